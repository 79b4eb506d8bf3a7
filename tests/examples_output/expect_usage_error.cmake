# SPDX-License-Identifier: MIT
# Runs PROGRAM with ARGUMENTS and expects exit code 2 and one line on standard error.

cmake_minimum_required(VERSION 3.23)

execute_process(COMMAND "${PROGRAM}" ${ARGUMENTS}
    RESULT_VARIABLE result ERROR_VARIABLE message OUTPUT_VARIABLE output)
if(NOT result EQUAL 2)
    message(FATAL_ERROR "${PROGRAM} ${ARGUMENTS} ended with ${result}, expected 2:\n${message}")
endif()
if(NOT message MATCHES "^[^\n]+\n$")
    message(FATAL_ERROR "${PROGRAM} ${ARGUMENTS} said, expected one line:\n${message}")
endif()
