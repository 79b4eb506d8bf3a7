// SPDX-License-Identifier: MIT
/// The last step of a GEMM: factors, epilogue, and rounding to the format of the result.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/host/block_convert.hpp>
#include <demi/host/detail/gemm_tile.hpp>
#include <demi/host/lanes.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace demi::inline DEMI_ABI {
namespace detail {

/// What becomes of a sum: `epilogue(alpha * sum + beta * old)`. `Swapped` says that the matrix is
/// the transpose of the one that the epilogue knows.
template <bool Swapped, class Epilogue>
struct gemm_finish {
    float alpha;
    float beta;
    const Epilogue& epilogue;

    /// Whether it leaves a sum in float as it is.
    bool changes_nothing() const {
        return std::same_as<Epilogue, no_epilogue> && alpha == 1 && beta == 0;
    }

    static constexpr matrix_position position(std::size_t row, std::size_t column) {
        return Swapped ? matrix_position{column, row} : matrix_position{row, column};
    }

    /// Whether the epilogue takes packs: a pack is consecutive columns of the matrix that it knows.
    template <class Pack>
    static constexpr bool takes() {
        if constexpr (std::same_as<Epilogue, no_epilogue>) {
            return true;
        } else if constexpr (Swapped) {
            return false;
        } else {
            return requires(const Epilogue& function, Pack value, matrix_position at) {
                { function(value, at) } -> std::convertible_to<Pack>;
            };
        }
    }
};

/// Finishes one row of sums. `old` is null when `beta` is 0; `to` may be `sums` or `old`.
template <class Finish>
struct finish_row {
    const Finish& finish;
    const float* sums;
    const float* old;
    float* to;
    std::size_t row;
    std::size_t column;
    std::size_t count;

    template <host_isa Isa>
    DEMI_HOST_KERNEL void run() const {
        using pack = lanes<lane_count<Isa>>;
        std::size_t i = 0;
        if constexpr (Finish::template takes<pack>()) {
            for (; i + tile_shape<Isa>::lanes <= count; i += tile_shape<Isa>::lanes) {
                pack value = pack(finish.alpha) * pack::load(sums + i);
                if (old != nullptr) value = value + pack(finish.beta) * pack::load(old + i);
                const pack result = finish.epilogue(value, Finish::position(row, column + i));
                result.store(to + i);
            }
        }
        for (; i < count; ++i) {
            float value = finish.alpha * sums[i];
            if (old != nullptr) value += finish.beta * old[i];
            to[i] = finish.epilogue(value, Finish::position(row, column + i));
        }
    }
};

/// Finishes one row of sums and stores it at `c`. Changes `sums`; `scratch` holds `count` floats.
template <host_isa Isa, class C, class Finish>
void store_row(const Finish& finish, float* sums, C* c, float* scratch, std::size_t row,
               std::size_t column, std::size_t count) {
    if constexpr (std::is_same_v<C, float>) {
        const float* old = finish.beta != 0 ? c : nullptr;
        run_for<Isa>(finish_row<Finish>{finish, sums, old, c, row, column, count});
    } else {
        const float* old = finish.beta != 0 ? scratch : nullptr;
        if (old != nullptr) {
            convert_block(Isa, static_cast<const C*>(c), scratch, count, nearest_even{});
        }
        run_for<Isa>(finish_row<Finish>{finish, sums, old, sums, row, column, count});
        convert_block(Isa, static_cast<const float*>(sums), c, count, nearest_even{});
    }
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
