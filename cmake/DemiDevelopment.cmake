# SPDX-License-Identifier: MIT
# What demi's own tests, examples and benchmarks are compiled with; nothing here reaches a consumer.

add_library(demi_dev_warnings INTERFACE)
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    target_compile_options(demi_dev_warnings INTERFACE
        -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion
        -Wold-style-cast -Wundef -Wnon-virtual-dtor -Woverloaded-virtual
        $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond>
        $<$<CXX_COMPILER_ID:GNU>:-Wlogical-op>
        $<$<CXX_COMPILER_ID:GNU>:-Wuseless-cast>)
    if(DEMI_WERROR AND PROJECT_IS_TOP_LEVEL)
        target_compile_options(demi_dev_warnings INTERFACE -Werror)
    endif()
endif()

# demi_add_executable(<name> <source>...): a program that sees demi as a consumer does, and is warned.
function(demi_add_executable name)
    add_executable(${name} ${ARGN})
    target_link_libraries(${name} PRIVATE demi::demi demi_dev_warnings)
endfunction()
