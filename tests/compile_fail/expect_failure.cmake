# SPDX-License-Identifier: MIT
# Compiles SOURCE, which must fail with a message that matches its line "// expect: <regex>". A
# source that mentions DEMI_TEST_SHOULD_COMPILE must compile when that is defined.

cmake_minimum_required(VERSION 3.23)

file(READ "${SOURCE}" text)
if(NOT text MATCHES "// expect: ([^\n]+)")
    message(FATAL_ERROR "${SOURCE}: no line '// expect: <regex>'")
endif()
set(expected "${CMAKE_MATCH_1}")
string(STRIP "${expected}" expected)

function(compile result_variable output_variable)
    execute_process(
        COMMAND "${CMAKE_COMMAND}" -E env LC_ALL=C
                "${COMPILER}" ${STANDARD} "-I${INCLUDE_DIR}" -fsyntax-only ${ARGN} "${SOURCE}"
        RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    set(${result_variable} "${result}" PARENT_SCOPE)
    set(${output_variable} "${output}" PARENT_SCOPE)
endfunction()

compile(result output)
if(result EQUAL 0)
    message(FATAL_ERROR "${SOURCE} compiled, expected an error that matches: ${expected}")
endif()
if(NOT output MATCHES "${expected}")
    message(FATAL_ERROR "${SOURCE} failed to compile, but not with: ${expected}\n${output}")
endif()

if(text MATCHES "DEMI_TEST_SHOULD_COMPILE")
    compile(result output -DDEMI_TEST_SHOULD_COMPILE)
    if(NOT result EQUAL 0)
        message(FATAL_ERROR "${SOURCE} must compile with DEMI_TEST_SHOULD_COMPILE:\n${output}")
    endif()
endif()
