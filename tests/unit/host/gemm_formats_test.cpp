// SPDX-License-Identifier: MIT
#include <demi/host/gemm.hpp>

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

template <class A, class B, class C>
void check_formats() {
    for (const host_isa isa : available_isas()) {
        matrix_rng rng(29);
        std::size_t errors = 0;
        for (int i = 0; i < 200; ++i) {
            const std::size_t rows = random_size(rng, 1, 70);
            const std::size_t columns = random_size(rng, 1, 70);
            const std::size_t depth = random_size(rng, 1, 70);
            padded_matrix<A> a(rows, depth, random_layout(rng), random_size(rng, 0, 3));
            padded_matrix<B> b(depth, columns, random_layout(rng), random_size(rng, 0, 3));
            padded_matrix<C> c(rows, columns, random_layout(rng), random_size(rng, 0, 3));
            a.fill(rng);
            b.fill(rng);
            const float beta = i % 2 == 0 ? 0.0f : 0.5f;
            if (beta != 0) c.fill(rng);
            const padded_matrix<C> old = c;
            detail::host_gemm(context_for(isa), 1.0f, std::as_const(a).view(),
                              std::as_const(b).view(), beta, c.view(), no_epilogue{});
            errors += count_wrong<A, B, C>(1.0f, std::as_const(a).view(), std::as_const(b).view(),
                                           beta, old.view(), std::as_const(c).view());
            if (!c.padding_is_untouched()) ++errors;
        }
        CAPTURE(std::string(name(isa)));
        CHECK(errors == 0);
    }
}

/// The product of one row and one column.
template <class T>
T dot(host_isa isa, const std::vector<T>& a, const std::vector<T>& b) {
    T c{};
    detail::host_gemm(context_for(isa), 1.0f, matrix_view<const T>(a.data(), 1, a.size()),
                      matrix_view<const T>(b.data(), b.size(), 1), 0.0f, matrix_view<T>(&c, 1, 1),
                      no_epilogue{});
    return c;
}

}  // namespace

TEST_CASE("float16 operands give a float16 product rounded once") {
    check_formats<float16, float16, float16>();
}

TEST_CASE("bfloat16 operands give a float product") { check_formats<bfloat16, bfloat16, float>(); }

TEST_CASE("operands of different 8-bit formats give a bfloat16 product") {
    check_formats<float8_e4m3, float8_e5m2, bfloat16>();
}

TEST_CASE("a float operand keeps its precision beside a float16 one") {
    check_formats<float, float16, float>();
}

TEST_CASE("a sum of 1024 bfloat16 ones does not stall") {
    const std::vector<bfloat16> ones(1024, bfloat16(1.0f));
    for (const host_isa isa : available_isas()) {
        CHECK(static_cast<float>(dot(isa, ones, ones)) == 1024.0f);
    }
}

TEST_CASE("small float16 terms beside a large one are not lost before the last rounding") {
    const std::vector<float16> ones(8, float16(1.0f));
    std::vector<float16> terms(8, float16(0x1p-11f));
    terms[0] = float16(1.0f);
    for (const host_isa isa : available_isas()) {
        CHECK(static_cast<float>(dot(isa, ones, terms)) == 1.00390625f);
    }
}

TEST_CASE("a partial sum beyond the range of float16 does not become infinity") {
    const std::vector<float16> ones(3 * 256, float16(1.0f));
    std::vector<float16> terms(3 * 256, float16(0.0f));
    terms[0] = terms[256] = float16(60000.0f);
    terms[512] = float16(-60000.0f);
    for (const host_isa isa : available_isas()) {
        CHECK(static_cast<float>(dot(isa, ones, terms)) == 60000.0f);
    }
}

TEST_CASE("subnormal float16 operands count") {
    const std::vector<float16> tiny(64, float16(0x1p-24f)), large(64, float16(0x1p10f));
    for (const host_isa isa : available_isas()) {
        CHECK(static_cast<float>(dot(isa, tiny, large)) == 64 * 0x1p-14f);
    }
}
