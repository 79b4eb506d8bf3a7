// SPDX-License-Identifier: MIT
/// The backends that a test runs on: `TEMPLATE_TEST_CASE("...", "", DEMI_TEST_BACKENDS)`.
#pragma once

#include <demi/host/host_backend.hpp>

#include <support/reference_backend.hpp>

#define DEMI_TEST_BACKENDS reference_backend, demi::host_backend
