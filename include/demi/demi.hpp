// SPDX-License-Identifier: MIT
/// Everything that a host compiler can use.
#pragma once

#include <demi/batching/host_memory.hpp>
#include <demi/batching/plan_batch.hpp>
#include <demi/batching/simulated_memory.hpp>
#include <demi/core/backend.hpp>
#include <demi/core/error.hpp>
#include <demi/host/host_backend.hpp>
#include <demi/kernels/cast.hpp>
#include <demi/kernels/epilogue.hpp>
#include <demi/kernels/float8_cast.hpp>
#include <demi/kernels/gemm.hpp>
#include <demi/kernels/gemm_batched.hpp>
#include <demi/kernels/matrix_cast.hpp>
#include <demi/kernels/packed_matrix.hpp>
#include <demi/kernels/reduce.hpp>
#include <demi/kernels/watching_epilogue.hpp>
#include <demi/precision/convert.hpp>
#include <demi/precision/interop_native.hpp>
#include <demi/precision/op_category.hpp>
#include <demi/precision/policy.hpp>
#include <demi/precision/policy_spec.hpp>
#include <demi/profiling/memory_meter.hpp>
#include <demi/scaling/loss_scale_presets.hpp>
#include <demi/scaling/loss_scaler.hpp>
#include <demi/training/adamw.hpp>
#include <demi/training/checkpoint.hpp>
#include <demi/training/optimizer.hpp>
#include <demi/training/sgd.hpp>
