# SPDX-License-Identifier: MIT
# Makes one header of demi/demi.hpp and everything of demi that it includes:
#   cmake -DOUTPUT=demi.hpp [-DINCLUDE_DIR=<demi>/include] -P amalgamate.cmake
# With -DFORWARD_DIR=<folder> it also writes, below that folder, every header that went in as a file
# that only includes the single one: code written against the separate headers then compiles with it.

cmake_minimum_required(VERSION 3.23)

if(NOT DEFINED OUTPUT)
    message(FATAL_ERROR "amalgamate: no OUTPUT, expected -DOUTPUT=<file>")
endif()
if(NOT DEFINED INCLUDE_DIR)
    get_filename_component(INCLUDE_DIR "${CMAKE_CURRENT_LIST_DIR}/../../include" ABSOLUTE)
endif()

set_property(GLOBAL PROPERTY expanded_headers "")

# The text of a header with demi's own includes replaced, depth first, each on its first appearance.
function(expand result path)
    set(${result} "" PARENT_SCOPE)
    get_property(expanded GLOBAL PROPERTY expanded_headers)
    if(path IN_LIST expanded)
        return()
    endif()
    set_property(GLOBAL APPEND PROPERTY expanded_headers "${path}")

    file(READ "${INCLUDE_DIR}/${path}" rest)
    string(REPLACE "// SPDX-License-Identifier: MIT\n" "" rest "${rest}")
    string(REPLACE "#pragma once\n" "" rest "${rest}")
    set(text "")
    while(TRUE)
        string(FIND "${rest}" "#include <demi/" start)
        if(start EQUAL -1)
            break()
        endif()
        string(SUBSTRING "${rest}" 0 ${start} before)
        string(SUBSTRING "${rest}" ${start} -1 rest)
        string(FIND "${rest}" "\n" end)
        string(SUBSTRING "${rest}" 0 ${end} line)
        math(EXPR end "${end} + 1")
        string(SUBSTRING "${rest}" ${end} -1 rest)
        string(REGEX REPLACE "^#include <([^>]+)>.*$" "\\1" included "${line}")
        expand(included_text "${included}")
        string(APPEND text "${before}${included_text}")
    endwhile()
    set(${result} "${text}${rest}" PARENT_SCOPE)
endfunction()

include("${CMAKE_CURRENT_LIST_DIR}/../DemiVersion.cmake")
get_filename_component(source_dir "${INCLUDE_DIR}" DIRECTORY)
demi_read_version(version "${source_dir}")

expand(text demi/demi.hpp)
file(READ "${source_dir}/LICENSE" licence)
string(STRIP "${licence}" licence)
string(REGEX REPLACE "\n" "\n// " licence "\n${licence}")
string(REGEX REPLACE "// \n" "//\n" licence "${licence}")
file(WRITE "${OUTPUT}"
    "// SPDX-License-Identifier: MIT\n/// demi ${version} in one header, generated from the separate ones.\n"
    "//${licence}\n#pragma once\n\n${text}")

if(DEFINED FORWARD_DIR)
    get_property(expanded GLOBAL PROPERTY expanded_headers)
    foreach(path IN LISTS expanded)
        file(WRITE "${FORWARD_DIR}/${path}" "#pragma once\n#include \"${OUTPUT}\"\n")
    endforeach()
endif()
