# SPDX-License-Identifier: MIT
# What demi's own tests, examples and benchmarks are compiled with; nothing here reaches a consumer.

add_library(demi_dev_warnings INTERFACE)
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    set(warnings
        -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion
        -Wold-style-cast -Wundef -Wnon-virtual-dtor -Woverloaded-virtual)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        list(APPEND warnings -Wduplicated-cond -Wlogical-op -Wuseless-cast)
    endif()
    if(DEMI_WERROR AND PROJECT_IS_TOP_LEVEL)
        list(APPEND warnings -Werror)
    endif()
    target_compile_options(demi_dev_warnings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>")
endif()

# demi_add_executable(<name> <source>...): a program that sees demi as a consumer does, and is warned.
function(demi_add_executable name)
    add_executable(${name} ${ARGN})
    target_link_libraries(${name} PRIVATE demi::demi demi_dev_warnings)
endfunction()

# Device code is compiled as PTX: a newer device compiles it further, and an emulator reads it.
set(demi_with_cuda FALSE)
if(DEMI_CUDA AND CUDAToolkit_FOUND)
    include(CheckLanguage)
    set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}" CACHE FILEPATH "The CUDA compiler")
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
        if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
            set(CMAKE_CUDA_ARCHITECTURES 80-virtual)
        endif()
        enable_language(CUDA)
        set(demi_with_cuda TRUE)
    endif()
endif()

# demi_use_cuda(<target>): its .cu sources see demi as a consumer's do, and are warned.
function(demi_use_cuda target)
    target_link_libraries(${target} PRIVATE demi::cuda CUDA::cudart)
    target_compile_options(${target} PRIVATE
        $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>
        "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xfatbin --compress-mode=none>"
        "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcompiler=-Wall,-Wextra>"
        $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${DEMI_WERROR}>>:-Werror=all-warnings>)
    set_target_properties(${target} PROPERTIES CUDA_RUNTIME_LIBRARY Shared)
endfunction()
