# SPDX-License-Identifier: MIT
"""Conan recipe of the checkout that it lies in: conan create cmake/conan"""

import os

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

TOP = os.path.join("..", "..")


class DemiConan(ConanFile):
    name = "demi"
    description = "Mixed-precision training components for C++ engines"
    license = "MIT"
    package_type = "header-library"
    settings = "os", "compiler", "build_type", "arch"
    no_copy_source = True

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, TOP, "include/demi/core/version.hpp"))
        numbers = (line.split()[-1] for line in header.splitlines() if "define DEMI_VERSION_" in line)
        self.version = ".".join(numbers)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "include/*", "cmake/*"):
            copy(self, pattern, os.path.join(self.recipe_folder, TOP), self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["DEMI_BUILD_TESTS"] = False
        toolchain.cache_variables["DEMI_BUILD_EXAMPLES"] = False
        toolchain.generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        CMake(self).install()
        rmdir(self, os.path.join(self.package_folder, "share"))
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_id(self):
        self.info.clear()

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_target_name", "demi::demi")
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread"]
