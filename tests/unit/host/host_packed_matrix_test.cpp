// SPDX-License-Identifier: MIT
#include <demi/host/host_backend.hpp>
#include <demi/host/host_packed_matrix.hpp>

#include <cstddef>
#include <memory_resource>
#include <string>
#include <support/catch.hpp>
#include <support/matrices.hpp>
#include <support/message_of.hpp>
#include <vector>

namespace {

using namespace demi;

template <class T, class Partner = T>
host_packed_matrix pack(const host_backend& where, std::size_t rows, std::size_t columns,
                        operand_side side, layout result = layout::row_major) {
    const std::vector<T> memory(rows * columns, T(1.0f));
    return where.pack<Partner>(matrix_view<const T>(memory.data(), rows, columns), side, result);
}

template <class T>
std::string refusal(const host_backend& where, const host_packed_matrix& packed, layout result) {
    const std::vector<T> memory(6, T(1.0f));
    std::vector<float> c(9, 7.0f);
    std::string text = message_of<invalid_argument>([&] {
        where.gemm(1, matrix_view<const T>(memory.data(), 3, 2),
                   matrix_view<const T>(memory.data(), 2, 3), 0,
                   matrix_view<float>(c.data(), 3, 3, result), no_epilogue{}, packed);
    });
    if (!text.empty()) CHECK(c == std::vector<float>(9, 7.0f));
    return text;
}

}  // namespace

TEST_CASE("a packed matrix says what it holds and for which kernels") {
    for (const host_isa isa : available_isas()) {
        const host_backend where({.threads = 1, .isa = isa});
        const auto packed = pack<bfloat16>(where, 70, 50, operand_side::left);
        CHECK(packed.isa() == isa);
        CHECK(packed.side() == operand_side::left);
        CHECK(packed.result() == layout::row_major);
        CHECK(packed.rows() == 70);
        CHECK(packed.columns() == 50);
        const std::size_t element = isa == host_isa::avx512_bf16 ? 2 : 4;
        CHECK(packed.bytes() >= 70 * 50 * element);
        CHECK(packed.bytes() <= 70 * 50 * element * 3 / 2);
    }
}

TEST_CASE("a matrix packed for one kernel is refused by another") {
    if (detected_host_isa() == host_isa::portable) return;
    const host_backend best({.threads = 1, .isa = detected_host_isa()});
    const host_backend portable({.threads = 1, .isa = host_isa::portable});
    const auto packed = pack<float>(portable, 2, 3, operand_side::right);
    CHECK(mentions(refusal<float>(best, packed, layout::row_major),
                   {"packed for portable", "expected avx"}));
    CHECK(refusal<float>(portable, packed, layout::row_major).empty());
    CHECK(mentions(refusal<float>(portable, packed, layout::column_major),
                   {"packed for row-major results", "expected column-major"}));
}

TEST_CASE("a bfloat16 matrix packed for float partners is refused by products of bfloat16 pairs") {
    if (detected_host_isa() < host_isa::avx512_bf16) return;
    const host_backend best({.threads = 1, .isa = detected_host_isa()});
    const auto packed = pack<bfloat16, float>(best, 2, 3, operand_side::right);
    CHECK(mentions(refusal<bfloat16>(best, packed, layout::row_major),
                   {"packed for avx512,", "expected avx512_bf16"}));
}

TEST_CASE("packing without memory is out_of_memory") {
    const host_backend where({.threads = 1, .memory = std::pmr::null_memory_resource()});
    CHECK_THROWS_AS(pack<float>(where, 3, 3, operand_side::left), out_of_memory);
}

TEST_CASE("an empty matrix is packed into nothing") {
    const host_backend where({.threads = 1, .memory = std::pmr::null_memory_resource()});
    CHECK(pack<float>(where, 0, 3, operand_side::left).bytes() == 0);
    CHECK(pack<float>(where, 3, 0, operand_side::left).bytes() == 0);
}
