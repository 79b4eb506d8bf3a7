#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# On a machine with a GPU: builds and runs the tests of label gpu, then the benchmark, which prints
# one table. Downloads nothing and takes less than six minutes; see README.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
build="${1:-build/gpu}"
mkdir -p "$build"

nvcc="$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)"
if [ -z "$nvcc" ]; then
    echo "run_gpu.sh: no nvcc in PATH or /usr/local/cuda/bin" >&2
    exit 1
fi
# 9.0 has instructions that exist for it alone.
capability="$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)"
if [ "$capability" = 90 ]; then architecture=90a; else architecture="$capability"; fi
echo "compute capability $capability, architecture sm_$architecture"

# Beside the tests: it needs no Catch2 and no CMake.
"$nvcc" -std=c++20 -O3 -arch="sm_$architecture" --cudart shared -Iinclude -Itests \
    tests/cuda/bench.cu -o "$build/cuda_bench" -ldl >"$build/bench.log" 2>&1 &
bench=$!

build_tests() {
    cmake -S . -B "$build/tests" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_COMPILER="$nvcc" \
        -DCMAKE_CUDA_ARCHITECTURES="$architecture-real" -DDEMI_CUDA_LAUNCHER= \
        -DDEMI_CATCH2_PROVIDER=system -DDEMI_BUILD_EXAMPLES=OFF -DDEMI_INSTALL=OFF &&
        timeout 150 cmake --build "$build/tests" --target cuda_programs --parallel "$(nproc)"
}
tests=0
if ! build_tests >"$build/tests.log" 2>&1; then
    echo "run_gpu.sh: the tests are skipped, for they could not be built:"
    grep -m 5 -iE "error|needs|not found" "$build/tests.log" || tail -n 5 "$build/tests.log"
else
    timeout 60 ctest --test-dir "$build/tests" -L gpu --output-on-failure || tests=$?
fi

if ! wait "$bench"; then
    cat "$build/bench.log" >&2
    exit 1
fi
timeout 120 "$build/cuda_bench"
exit "$tests"
