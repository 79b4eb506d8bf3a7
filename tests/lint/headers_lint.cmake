# SPDX-License-Identifier: MIT
# The form of a header: licence line, one sentence, pragma once, a length that one can read at once,
# demi's own includes outside every #if (the amalgamation expands each of them once), and a test.

cmake_minimum_required(VERSION 3.23)
include("${CMAKE_CURRENT_LIST_DIR}/lint.cmake")

set(most_lines 300)

foreach(header IN LISTS headers)
    file(READ "${ROOT}/${header}" text)
    string(REGEX MATCHALL "\n" newlines "${text}")
    list(LENGTH newlines lines)
    if(lines GREATER most_lines)
        finding("${header}: ${lines} lines, expected at most ${most_lines}")
    endif()
    if(NOT text MATCHES "^// SPDX-License-Identifier: MIT\n/// [^\n]+\n")
        finding("${header}: expected the licence line and a sentence about the file at the top")
    endif()
    string(REGEX MATCHALL "\n#pragma once\n" guards "${text}")
    list(LENGTH guards guards)
    if(NOT guards EQUAL 1)
        finding("${header}: ${guards} times #pragma once, expected 1")
    endif()
    if(text MATCHES "using namespace")
        finding("${header}: using namespace in a header")
    endif()

    set(depth 0)
    matching_lines(directives "${header}" "^ *# *(if|endif|include <demi/)")
    foreach(line IN LISTS directives)
        if(line MATCHES "# *if")
            math(EXPR depth "${depth} + 1")
        elseif(line MATCHES "# *endif")
            math(EXPR depth "${depth} - 1")
        elseif(depth GREATER 0)
            finding("${header}: '${line}' stands within an #if")
        endif()
    endforeach()

    # The umbrella headers have no code, what is in detail/ is tested through its users, and the
    # tests of device code are few, because compiling them takes long.
    string(REGEX REPLACE "^include/demi/(.+)\\.hpp$" "tests/unit/\\1_test.cpp" test "${header}")
    if(test MATCHES "^tests/unit/[a-z_]+/" AND NOT test MATCHES "/detail/|^tests/unit/cuda/"
            AND NOT EXISTS "${ROOT}/${test}")
        finding("${header}: no ${test}")
    endif()
endforeach()
report("headers that break the form")
