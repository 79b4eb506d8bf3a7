# SPDX-License-Identifier: MIT
# The layout of the sources is what clang-format 14 makes of them; other releases differ.

cmake_minimum_required(VERSION 3.23)
include("${CMAKE_CURRENT_LIST_DIR}/lint.cmake")

set(release "")
if(CLANG_FORMAT)
    execute_process(COMMAND "${CLANG_FORMAT}" --version OUTPUT_VARIABLE release)
endif()
if(NOT release MATCHES "version 14\\.")
    message("skipped: no clang-format 14")
    return()
endif()
# Compared as text: --dry-run of this release also reports replacements that change nothing.
foreach(source IN LISTS sources)
    execute_process(COMMAND "${CLANG_FORMAT}" "${source}"
        WORKING_DIRECTORY "${ROOT}" OUTPUT_VARIABLE formatted)
    file(READ "${ROOT}/${source}" text)
    if(NOT formatted STREQUAL text)
        finding("${source}")
    endif()
endforeach()
report("files that clang-format would change")
