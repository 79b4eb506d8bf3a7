# SPDX-License-Identifier: MIT
# Reads the version from the one place that states it.

function(demi_read_version result source_dir)
    file(READ "${source_dir}/include/demi/core/version.hpp" text)
    set(version "")
    foreach(part MAJOR MINOR PATCH)
        if(NOT text MATCHES "#define DEMI_VERSION_${part} ([0-9]+)")
            message(FATAL_ERROR "include/demi/core/version.hpp: no DEMI_VERSION_${part}, expected a number")
        endif()
        list(APPEND version "${CMAKE_MATCH_1}")
    endforeach()
    list(JOIN version "." version)
    set(${result} "${version}" PARENT_SCOPE)
endfunction()
