# SPDX-License-Identifier: MIT
# Finds Catch2 3 or 2.13, so that a fresh machine needs neither root nor a visit to a code host.
#
#   system  an installed package
#   apt     the distribution's own package, unpacked into the build folder by an unprivileged apt-get
#   fetch   the pinned sources
#   auto    the first of these that works

set(DEMI_CATCH2_PROVIDER auto CACHE STRING "Where Catch2 comes from: auto, system, apt or fetch")
set_property(CACHE DEMI_CATCH2_PROVIDER PROPERTY STRINGS auto system apt fetch)

set(demi_catch2_fetch_tag v3.4.0)

macro(demi_find_catch2)
    find_package(Catch2 3 QUIET ${ARGN})
    if(NOT Catch2_FOUND)
        find_package(Catch2 2.13.5 QUIET ${ARGN})
    endif()
endmacro()

# Unpacks the distribution's package below `root`. Lists and cache are its own: the system's may be
# missing, and are not writable without root.
function(demi_unpack_catch2_package root)
    find_program(DEMI_APT_GET apt-get)
    find_program(DEMI_DPKG_DEB dpkg-deb)
    mark_as_advanced(DEMI_APT_GET DEMI_DPKG_DEB)
    if(NOT DEMI_APT_GET OR NOT DEMI_DPKG_DEB OR EXISTS "${root}/usr")
        return()
    endif()
    message(STATUS "Catch2 is not installed: unpacking the distribution's package into the build folder")
    file(MAKE_DIRECTORY "${root}/lists/partial" "${root}/cache/archives/partial")
    set(apt "${DEMI_APT_GET}"
        -o "Dir::State=${root}" -o "Dir::State::Lists=${root}/lists"
        -o Dir::State::status=/var/lib/dpkg/status
        -o "Dir::Cache=${root}/cache" -o "Dir::Log=${root}"
        -o Debug::NoLocking=1 -o APT::Sandbox::User= -o Acquire::Languages=none
        -o Acquire::Retries=2 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20
        -o APT::Update::Post-Invoke= -o APT::Update::Post-Invoke-Success=)
    # A source that cannot be reached makes update fail although the others are up to date.
    execute_process(COMMAND ${apt} update WORKING_DIRECTORY "${root}" TIMEOUT 180
        OUTPUT_FILE "${root}/update.log" ERROR_FILE "${root}/update.log")
    execute_process(COMMAND ${apt} download catch2 WORKING_DIRECTORY "${root}" TIMEOUT 180
        OUTPUT_FILE "${root}/download.log" ERROR_FILE "${root}/download.log")
    file(GLOB packages "${root}/catch2_*.deb")
    foreach(package IN LISTS packages)
        execute_process(COMMAND "${DEMI_DPKG_DEB}" -x "${package}" "${root}")
    endforeach()
    file(REMOVE_RECURSE "${root}/lists" "${root}/cache")
endfunction()

set(demi_catch2_root "${PROJECT_BINARY_DIR}/catch2-package")

if(DEMI_CATCH2_PROVIDER MATCHES "^(auto|system)$")
    demi_find_catch2()
endif()
if(NOT Catch2_FOUND AND DEMI_CATCH2_PROVIDER MATCHES "^(auto|apt)$")
    demi_unpack_catch2_package("${demi_catch2_root}")
    unset(Catch2_DIR CACHE)
    demi_find_catch2(PATHS "${demi_catch2_root}/usr" NO_DEFAULT_PATH)
endif()
if(NOT Catch2_FOUND AND DEMI_CATCH2_PROVIDER MATCHES "^(auto|fetch)$")
    message(STATUS "Catch2 is not installed: fetching its sources")
    include(FetchContent)
    FetchContent_Declare(Catch2
        GIT_REPOSITORY https://github.com/catchorg/Catch2.git
        GIT_TAG ${demi_catch2_fetch_tag}
        GIT_SHALLOW TRUE)
    find_package(Git QUIET)
    if(Git_FOUND)
        # Asked first, because FetchContent ends the configuration with a less helpful message.
        execute_process(
            COMMAND "${GIT_EXECUTABLE}" ls-remote --exit-code https://github.com/catchorg/Catch2.git
                    ${demi_catch2_fetch_tag}
            RESULT_VARIABLE demi_catch2_unreachable OUTPUT_QUIET ERROR_QUIET TIMEOUT 20)
        if(demi_catch2_unreachable STREQUAL "0" OR FETCHCONTENT_SOURCE_DIR_CATCH2)
            FetchContent_MakeAvailable(Catch2)
            list(APPEND CMAKE_MODULE_PATH "${catch2_SOURCE_DIR}/extras")
            set(Catch2_FOUND TRUE)
        endif()
    endif()
endif()
if(NOT Catch2_FOUND)
    message(FATAL_ERROR
        "demi's tests need Catch2 (3, or 2.13.5 and later), and it was neither installed nor to be had "
        "from '${DEMI_CATCH2_PROVIDER}'. Install it (on Debian and Ubuntu: sudo apt-get install catch2), "
        "or configure with -DDEMI_BUILD_TESTS=OFF.")
endif()
message(STATUS "Catch2 ${Catch2_VERSION}")
include(Catch)
