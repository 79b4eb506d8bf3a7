# SPDX-License-Identifier: MIT
# Install rules. The result is the same bytes on any machine: headers, CMake and pkg-config files.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Nothing that is installed is built, so packaging need not wait for the tests.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY TRUE)

set(demi_config_dir "${CMAKE_INSTALL_DATADIR}/cmake/demi")

install(TARGETS demi_demi demi_cuda demi_cublaslt EXPORT demi-targets FILE_SET HEADERS)
install(EXPORT demi-targets NAMESPACE demi:: DESTINATION "${demi_config_dir}")

configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/cmake/demi-config.cmake.in" "${PROJECT_BINARY_DIR}/demi-config.cmake"
    INSTALL_DESTINATION "${demi_config_dir}"
    NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/demi-config-version.cmake"
    COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES
    "${PROJECT_BINARY_DIR}/demi-config.cmake" "${PROJECT_BINARY_DIR}/demi-config-version.cmake"
    DESTINATION "${demi_config_dir}")

# The prefix is found from the place of the file itself, so that the tree can be moved.
set(demi_pkgconfig_dir "${CMAKE_INSTALL_DATADIR}/pkgconfig")
file(RELATIVE_PATH demi_pkgconfig_to_prefix
    "${CMAKE_INSTALL_FULL_DATADIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" demi_pkgconfig_to_prefix "${demi_pkgconfig_to_prefix}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/demi.pc.in" "${PROJECT_BINARY_DIR}/demi.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/demi.pc" DESTINATION "${demi_pkgconfig_dir}")

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/demi")

if(PROJECT_IS_TOP_LEVEL)
    set(CPACK_GENERATOR TGZ)
    set(CPACK_PACKAGE_FILE_NAME "demi-${PROJECT_VERSION}")
    set(CPACK_PACKAGE_VENDOR "demi")
    set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
    set(CPACK_VERBATIM_VARIABLES ON)
    include(CPack)
endif()
