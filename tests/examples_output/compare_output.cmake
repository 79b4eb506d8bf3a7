# SPDX-License-Identifier: MIT
# Runs PROGRAM and compares its output with the fenced block after "<!-- output: NAME -->" in README.

cmake_minimum_required(VERSION 3.23)

file(READ "${README}" text)
set(marker "<!-- output: ${NAME} -->")
string(FIND "${text}" "${marker}" start)
if(start EQUAL -1)
    message(FATAL_ERROR "${README}: no line '${marker}'")
endif()
string(SUBSTRING "${text}" ${start} -1 text)
string(REGEX REPLACE "^[^`]*```[a-z]*\n" "" text "${text}")
string(FIND "${text}" "```" end)
if(end EQUAL -1)
    message(FATAL_ERROR "${README}: no fenced block after '${marker}'")
endif()
string(SUBSTRING "${text}" 0 ${end} expected)

execute_process(COMMAND "${PROGRAM}" OUTPUT_VARIABLE output RESULT_VARIABLE result)
if(NOT result EQUAL 0)
    message(FATAL_ERROR "${NAME} ended with ${result}:\n${output}")
endif()
string(STRIP "${expected}" expected)
string(STRIP "${output}" output)
if(NOT output STREQUAL expected)
    message(FATAL_ERROR "${NAME} printed\n${output}\n\nexpected, from ${README}\n${expected}")
endif()
