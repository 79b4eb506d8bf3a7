// SPDX-License-Identifier: MIT
/// Makes the number types of the CUDA headers formats of demi.
#pragma once

#include <demi/precision/bfloat16.hpp>
#include <demi/precision/float16.hpp>
#include <demi/precision/float8.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

template <>
struct demi::format_traits<__half> : demi::format_traits<demi::float16> {};
template <>
struct demi::format_traits<__nv_bfloat16> : demi::format_traits<demi::bfloat16> {};
template <>
struct demi::format_traits<__nv_fp8_e4m3> : demi::format_traits<demi::float8_e4m3> {};
template <>
struct demi::format_traits<__nv_fp8_e5m2> : demi::format_traits<demi::float8_e5m2> {};
