// SPDX-License-Identifier: MIT
#include <demi/host/gemm.hpp>
#include <demi/host/lanes.hpp>

#include <cstddef>
#include <memory_resource>
#include <string>
#include <support/catch.hpp>
#include <support/matrices.hpp>
#include <utility>
#include <vector>

namespace {

using namespace demi;

host_context context_for(host_isa isa) { return {isa, nullptr, std::pmr::new_delete_resource()}; }

/// Writes down how often each place is visited, one value at a time.
struct count_visits {
    matrix_view<int> visits;

    float operator()(float value, matrix_position at) const {
        ++visits(at.row, at.column);
        return value + static_cast<float>(1000 * at.row + at.column);
    }
};

/// The same for any number type; a pack visits the place of each of its lanes.
struct count_lane_visits {
    matrix_view<int> visits;
    std::size_t* packs;

    template <class Real>
    Real operator()(Real value, matrix_position at) const {
        if constexpr (requires { Real::count; }) {
            ++*packs;
            float steps[Real::count];
            for (std::size_t i = 0; i < Real::count; ++i) {
                ++visits(at.row, at.column + i);
                steps[i] = static_cast<float>(1000 * at.row + at.column + i);
            }
            return value + Real::load(steps);
        } else {
            return count_visits{visits}(value, at);
        }
    }
};

template <class MakeEpilogue>
std::size_t errors_with_epilogue(host_isa isa, layout order, const MakeEpilogue& make) {
    matrix_rng rng(23);
    std::size_t errors = 0;
    for (int i = 0; i < 100; ++i) {
        const std::size_t rows = random_size(rng, 1, 70);
        const std::size_t columns = random_size(rng, 1, 70);
        const std::size_t depth = random_size(rng, 0, 20);
        padded_matrix<float> a(rows, depth, random_layout(rng), 1);
        padded_matrix<float> b(depth, columns, random_layout(rng), 1);
        padded_matrix<float> c(rows, columns, order, 1);
        std::vector<int> visits(rows * columns);
        for (auto* matrix : {&a, &b}) {
            for (std::size_t r = 0; r < matrix->view().rows(); ++r) {
                for (std::size_t n = 0; n < matrix->view().columns(); ++n) {
                    matrix->view()(r, n) = 2.0f;
                }
            }
        }
        detail::host_gemm(context_for(isa), 1.0f, std::as_const(a).view(), std::as_const(b).view(),
                          0.0f, c.view(), make(matrix_view<int>(visits.data(), rows, columns)));
        if (visits != std::vector<int>(rows * columns, 1)) ++errors;
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t n = 0; n < columns; ++n) {
                if (c.view()(r, n) != static_cast<float>(4 * depth + 1000 * r + n)) ++errors;
            }
        }
    }
    return errors;
}

}  // namespace

TEST_CASE("an epilogue of one value is called once per element with its place") {
    for (const host_isa isa : available_isas()) {
        for (const auto order : {layout::row_major, layout::column_major}) {
            CAPTURE(std::string(name(isa)), static_cast<int>(order));
            CHECK(errors_with_epilogue(isa, order, [](const matrix_view<int>& visits) {
                      return count_visits{visits};
                  }) == 0);
        }
    }
}

TEST_CASE("an epilogue of any number type sees packs of consecutive columns of the result") {
    for (const host_isa isa : available_isas()) {
        for (const auto order : {layout::row_major, layout::column_major}) {
            std::size_t packs = 0;
            CAPTURE(std::string(name(isa)), static_cast<int>(order));
            CHECK(errors_with_epilogue(isa, order, [&](const matrix_view<int>& visits) {
                      return count_lane_visits{visits, &packs};
                  }) == 0);
            CHECK((packs > 0) == (order == layout::row_major));
        }
    }
}

TEST_CASE(
    "an epilogue sees the sum with both factors applied, and the result is rounded after it") {
    for (const host_isa isa : available_isas()) {
        const std::vector<bfloat16> a(40, bfloat16(1.0f));
        std::vector<bfloat16> c(40 * 40, bfloat16(16.0f));
        const auto epilogue = [](float value, matrix_position) { return value - 256.0f; };
        detail::host_gemm(context_for(isa), 249.0f, matrix_view<const bfloat16>(a.data(), 40, 1),
                          matrix_view<const bfloat16>(a.data(), 1, 40), 0.5f,
                          matrix_view<bfloat16>(c.data(), 40, 40), epilogue);
        // 257 is no bfloat16: rounding before the epilogue would give 0.
        std::size_t wrong = 0;
        for (const bfloat16 value : c) wrong += static_cast<float>(value) != 1.0f;
        CAPTURE(std::string(name(isa)));
        CHECK(wrong == 0);
    }
}

TEST_CASE("an epilogue of doubles gets doubles") {
    const std::vector<double> a{1.0};
    std::vector<double> c(1);
    const auto epilogue = [](auto value, matrix_position) {
        return value + decltype(value){0x1p-40};
    };
    detail::host_gemm(context_for(host_isa::portable), 1.0f,
                      matrix_view<const double>(a.data(), 1, 1),
                      matrix_view<const double>(a.data(), 1, 1), 0.0f,
                      matrix_view<double>(c.data(), 1, 1), epilogue);
    CHECK(c[0] == 1.0 + 0x1p-40);
}
