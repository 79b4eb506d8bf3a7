# SPDX-License-Identifier: MIT
# Consumes demi by one ROUTE in the empty folder WORK, and runs the program that comes out.

cmake_minimum_required(VERSION 3.23)

function(run result)
    execute_process(COMMAND ${ARGN}
        RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT code EQUAL 0)
        list(JOIN ARGN " " command)
        message(FATAL_ERROR "${ROUTE}: '${command}' ended with ${code}:\n${output}")
    endif()
    set(${result} "${output}" PARENT_SCOPE)
endfunction()

function(expect_conversion output)
    if(NOT output MATCHES "0\\.1 becomes 0\\.0999756 in float16")
        message(FATAL_ERROR "${ROUTE}: the program printed '${output}'")
    endif()
endfunction()

# Configures and builds the project in the folder `name`, and runs its program.
function(consume name)
    run(ignored "${CMAKE_COMMAND}" -S "${ROOT}/tests/package/${name}" -B "${WORK}/build"
        -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DDEMI_EXPECTED_VERSION=${VERSION}"
        ${ARGN})
    run(ignored "${CMAKE_COMMAND}" --build "${WORK}/build")
    run(output ${LAUNCHER} "${WORK}/build/bin/consumer")
    expect_conversion("${output}")
endfunction()

function(compile_and_run)
    run(ignored "${COMPILER}" -std=c++20 "${ROOT}/tests/package/consumer.cpp" ${ARGN}
        -o "${WORK}/consumer")
    run(output "${WORK}/consumer")
    expect_conversion("${output}")
endfunction()

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")

if(ROUTE MATCHES "^(add_subdirectory|fetch_content)$")
    consume(${ROUTE} "-DDEMI_SOURCE=${ROOT}")

elseif(ROUTE STREQUAL "find_package")
    consume(find_package "-DCMAKE_PREFIX_PATH=${PREFIX}")

elseif(ROUTE STREQUAL "cuda")
    consume(cuda "-DCMAKE_PREFIX_PATH=${PREFIX}" "-DCMAKE_CUDA_COMPILER=${CUDA_COMPILER}"
        -DCMAKE_CUDA_ARCHITECTURES=80-virtual)

elseif(ROUTE STREQUAL "moved_prefix")
    file(COPY "${PREFIX}/" DESTINATION "${WORK}/elsewhere")
    file(GLOB_RECURSE installed "${WORK}/elsewhere/*")
    foreach(file IN LISTS installed)
        file(READ "${file}" text)
        string(FIND "${text}" "${PREFIX}" place)
        if(NOT place EQUAL -1)
            message(FATAL_ERROR "${file} holds the path it was installed to")
        endif()
    endforeach()
    consume(find_package "-DCMAKE_PREFIX_PATH=${WORK}/elsewhere")

elseif(ROUTE STREQUAL "tarball")
    get_filename_component(cmake_dir "${CMAKE_COMMAND}" DIRECTORY)
    run(ignored "${cmake_dir}/cpack" -G TGZ --config "${BUILD}/CPackConfig.cmake" -B "${WORK}")
    file(ARCHIVE_EXTRACT INPUT "${WORK}/demi-${VERSION}.tar.gz" DESTINATION "${WORK}")
    consume(find_package "-DCMAKE_PREFIX_PATH=${WORK}/demi-${VERSION}")

elseif(ROUTE STREQUAL "refused_version")
    run(ignored "${CMAKE_COMMAND}" -S "${ROOT}/tests/package/refused_version" -B "${WORK}/build"
        -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DDEMI_EXPECTED_VERSION=${VERSION}"
        "-DCMAKE_PREFIX_PATH=${PREFIX}")

elseif(ROUTE STREQUAL "pkg_config")
    find_program(PKG_CONFIG NAMES pkg-config pkgconf)
    if(NOT PKG_CONFIG)
        message("skipped: no pkg-config")
        return()
    endif()
    set(ENV{PKG_CONFIG_PATH} "${PREFIX}/share/pkgconfig")
    run(version "${PKG_CONFIG}" --modversion demi)
    string(STRIP "${version}" version)
    if(NOT version STREQUAL VERSION)
        message(FATAL_ERROR "pkg-config says version ${version}, expected ${VERSION}")
    endif()
    run(flags "${PKG_CONFIG}" --cflags --libs demi)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    compile_and_run(${flags})

elseif(ROUTE STREQUAL "single_header")
    run(ignored "${CMAKE_COMMAND}" "-DOUTPUT=${WORK}/demi/demi.hpp"
        -P "${ROOT}/cmake/tools/amalgamate.cmake")
    compile_and_run("-I${WORK}" -pthread)

else()
    message(FATAL_ERROR "no route '${ROUTE}'")
endif()
