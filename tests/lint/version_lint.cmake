# SPDX-License-Identifier: MIT
# The version is stated in core/version.hpp. The vcpkg manifest must repeat it and has to agree; no
# other file may hold it.

cmake_minimum_required(VERSION 3.23)
include("${CMAKE_CURRENT_LIST_DIR}/lint.cmake")
include("${ROOT}/cmake/DemiVersion.cmake")

demi_read_version(version "${ROOT}")
string(REPLACE "." "\\." version_pattern "${version}")

set(manifest cmake/vcpkg/ports/demi/vcpkg.json)
file(READ "${ROOT}/${manifest}" text)
string(JSON manifest_version GET "${text}" version)
if(NOT manifest_version STREQUAL version)
    finding("${manifest}: version ${manifest_version}, expected ${version}")
endif()

foreach(file IN LISTS sources build_files top_files)
    if(file STREQUAL manifest)
        continue()
    endif()
    matching_lines(copies "${file}" "(^|[^0-9.])${version_pattern}([^0-9.]|$)")
    foreach(line IN LISTS copies)
        finding("${file} repeats the version: '${line}'")
    endforeach()
endforeach()
report("versions that can go astray")
