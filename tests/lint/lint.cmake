# SPDX-License-Identifier: MIT
# What the lints share: the files, and a report that lists every finding before it fails.

set(findings "")

macro(finding text)
    string(APPEND findings "  ${text}\n")
endmacro()

macro(report rule)
    if(findings)
        message(FATAL_ERROR "${rule}:\n${findings}")
    endif()
endmacro()

file(GLOB_RECURSE headers RELATIVE "${ROOT}" "${ROOT}/include/*.hpp" "${ROOT}/include/*.cuh")
file(GLOB_RECURSE sources RELATIVE "${ROOT}"
    "${ROOT}/include/*.hpp" "${ROOT}/include/*.cuh"
    "${ROOT}/tests/*.[ch]pp" "${ROOT}/tests/*.cu" "${ROOT}/tests/*.cuh"
    "${ROOT}/examples/*.[ch]pp" "${ROOT}/examples/*.cu")
file(GLOB_RECURSE build_files RELATIVE "${ROOT}"
    "${ROOT}/cmake/*" "${ROOT}/tests/*.cmake" "${ROOT}/tests/*CMakeLists.txt"
    "${ROOT}/examples/CMakeLists.txt" "${ROOT}/tests/*.in" "${ROOT}/tests/*.py")
file(GLOB top_files RELATIVE "${ROOT}"
    "${ROOT}/CMakeLists.txt" "${ROOT}/CMakePresets.json" "${ROOT}/*.md" "${ROOT}/.clang-*"
    "${ROOT}/.gitignore" "${ROOT}/.ci/run" "${ROOT}/examples/*.md")

# The lines of a file that match, in a form that CMake lists cannot break.
function(matching_lines result file regex)
    file(READ "${ROOT}/${file}" text)
    string(REGEX REPLACE "[];[]" "?" text "${text}")
    string(REPLACE "\\" "?" text "${text}")
    string(REPLACE "\n" ";" text "${text}")
    list(FILTER text INCLUDE REGEX "${regex}")
    set(${result} "${text}" PARENT_SCOPE)
endfunction()
