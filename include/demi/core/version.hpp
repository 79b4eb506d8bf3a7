// SPDX-License-Identifier: MIT
/// The version, stated once: CMake and every package file read it from here.
#pragma once

#define DEMI_VERSION_MAJOR 0
#define DEMI_VERSION_MINOR 1
#define DEMI_VERSION_PATCH 0
