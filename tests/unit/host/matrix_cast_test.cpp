// SPDX-License-Identifier: MIT
/// Conversion of matrices: every layout, shape and place, on every instruction set.
#include <demi/host/matrix_cast.hpp>
#include <demi/precision/convert.hpp>
#include <demi/precision/random_bits.hpp>

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <random>
#include <string>
#include <support/catch.hpp>
#include <support/matrices.hpp>
#include <unit/host/available_isas.hpp>
#include <utility>
#include <vector>

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

namespace {

using demi::bfloat16;
using demi::float16;
using demi::float8_e4m3;
using demi::host_context;
using demi::host_isa;
using demi::layout;
using demi::matrix_view;
using demi::nearest_even;
using demi::toward_zero;

constexpr std::size_t always_stream = 0;
constexpr std::size_t never_stream = ~std::size_t{0};

template <class T>
void fill_with_bits(const matrix_view<T>& matrix, matrix_rng& random) {
    for (std::size_t r = 0; r < matrix.rows(); ++r) {
        for (std::size_t c = 0; c < matrix.columns(); ++c) {
            const auto bits = static_cast<demi::bits_of<T>>(random());
            __builtin_memcpy(static_cast<void*>(&matrix(r, c)), &bits, sizeof bits);
        }
    }
}

/// Elements that are not what the conversion of one value gives; a NaN copied within one format may
/// become quiet.
template <class From, class To, class Rounding>
std::size_t wrong_elements(const matrix_view<const From>& from, const matrix_view<const To>& to,
                           Rounding rounding) {
    const auto bits_at = [](const auto& place) {
        demi::bits_of<std::remove_cvref_t<decltype(place)>> bits;
        __builtin_memcpy(&bits, &place, sizeof bits);
        return bits;
    };
    std::size_t wrong = 0;
    for (std::size_t r = 0; r < from.rows(); ++r) {
        for (std::size_t c = 0; c < from.columns(); ++c) {
            const auto expected = demi::convert_bits<To, From>(bits_at(from(r, c)), rounding);
            wrong += bits_at(to(r, c)) != expected;
        }
    }
    return wrong;
}

struct one_thread {
    demi::host_executor executor = demi::make_thread_executor(1);
    host_context on(host_isa isa) const {
        return {isa, &executor, std::pmr::get_default_resource()};
    }
};

template <class From, class To, class Rounding>
std::size_t wrong_cast(const host_context& context, std::size_t rows, std::size_t columns,
                       matrix_rng& random, std::size_t most_cached, Rounding rounding) {
    padded_matrix<From> from(rows, columns, random_layout(random), random_size(random, 0, 3));
    padded_matrix<To> to(rows, columns, random_layout(random), random_size(random, 0, 3));
    fill_with_bits(from.view(), random);
    demi::detail::host_cast_matrix(context, matrix_view<const From>(from.view()), to.view(),
                                   rounding, most_cached);
    const matrix_view<const From> source = from.view();
    const matrix_view<const To> target = to.view();
    return wrong_elements(source, target, rounding) + !to.padding_is_untouched();
}

template <class From, class To, class Rounding>
void check_shapes(Rounding rounding) {
    const one_thread thread;
    for (const host_isa isa : demi_test::available_isas()) {
        matrix_rng random(5);
        std::size_t wrong = 0;
        for (std::size_t size = 0; size <= 130; ++size) {
            const std::size_t other = random_size(random, 0, 130);
            for (const std::size_t most_cached : {never_stream, always_stream}) {
                wrong += wrong_cast<From, To>(thread.on(isa), size, other, random, most_cached,
                                              rounding);
                wrong += wrong_cast<From, To>(thread.on(isa), other, size, random, most_cached,
                                              rounding);
            }
        }
        CAPTURE(std::string(demi::name(isa)));
        CHECK(wrong == 0);
    }
}

}  // namespace

TEST_CASE("a matrix of any shape, layout and padding is converted as its elements are") {
    SECTION("float to float16") { check_shapes<float, float16>(nearest_even{}); }
    SECTION("bfloat16 to float") { check_shapes<bfloat16, float>(nearest_even{}); }
    SECTION("float to bfloat16, cut") { check_shapes<float, bfloat16>(toward_zero{}); }
    SECTION("float16 to bfloat16") { check_shapes<float16, bfloat16>(nearest_even{}); }
    SECTION("float8 to float") { check_shapes<float8_e4m3, float>(nearest_even{}); }
    SECTION("double to float16") { check_shapes<double, float16>(nearest_even{}); }
    SECTION("float16 to float16") { check_shapes<float16, float16>(nearest_even{}); }
}

TEST_CASE("the random bits of a matrix are those of its target's memory without padding") {
    const one_thread thread;
    const demi::stochastic rounding{3, 4};
    for (const host_isa isa : demi_test::available_isas()) {
        matrix_rng random(6);
        std::size_t wrong = 0;
        for (int i = 0; i < 40; ++i) {
            const std::size_t rows = random_size(random, 1, 130);
            const std::size_t columns = random_size(random, 1, 130);
            padded_matrix<float> from(rows, columns, random_layout(random), 1);
            padded_matrix<bfloat16> to(rows, columns, random_layout(random), i % 3 == 0 ? 0 : 2);
            from.fill(random);
            demi::detail::host_cast_matrix(thread.on(isa), matrix_view<const float>(from.view()),
                                           to.view(), rounding, never_stream);
            const auto target = to.view();
            for (std::size_t r = 0; r < rows; ++r) {
                for (std::size_t c = 0; c < columns; ++c) {
                    const auto place =
                        target.order() == layout::row_major ? r * columns + c : c * rows + r;
                    const demi::stochastic_bits bits{
                        demi::random_bits(demi::random_key(3, 4, 0), place)};
                    wrong += target(r, c).bits() !=
                             demi::convert<bfloat16>(from.view()(r, c), bits).bits();
                }
            }
        }
        CAPTURE(std::string(demi::name(isa)));
        CHECK(wrong == 0);
    }
}

TEST_CASE("threads share a large matrix and give the same bits") {
    const auto executor = demi::make_thread_executor(3);
    for (const host_isa isa : demi_test::available_isas()) {
        const host_context context{isa, &executor, std::pmr::get_default_resource()};
        matrix_rng random(7);
        std::size_t wrong = 0;
        for (const std::size_t most_cached : {never_stream, always_stream}) {
            for (const std::size_t rows : {1u, 3u, 700u}) {
                const std::size_t columns = 200000 / rows + 61;
                wrong += wrong_cast<float, float16>(context, rows, columns, random, most_cached,
                                                    nearest_even{});
                wrong += wrong_cast<float16, float>(context, columns, rows, random, most_cached,
                                                    nearest_even{});
            }
        }
        CAPTURE(std::string(demi::name(isa)));
        CHECK(wrong == 0);
    }
}

namespace {

/// A transposing cast of columns into rows that begin with a cache line.
template <class From, class To>
std::size_t wrong_aligned_cast(const host_context& context, std::size_t rows, std::size_t columns,
                               matrix_rng& random) {
    padded_matrix<From> from(rows, columns, layout::column_major, 5);
    fill_with_bits(from.view(), random);
    std::vector<To> memory(rows * columns + 64);
    const auto past_line = reinterpret_cast<std::uintptr_t>(memory.data()) % 64;
    To* const aligned = memory.data() + (64 - past_line) % 64 / sizeof(To);
    const matrix_view<To> to(aligned, rows, columns);
    const matrix_view<const From> source = from.view();
    demi::detail::host_cast_matrix(context, source, to, nearest_even{}, always_stream);
    return wrong_elements(source, matrix_view<const To>(to), nearest_even{});
}

}  // namespace

TEST_CASE("lines of whole cache lines are streamed when they are transposed") {
    const one_thread thread;
    matrix_rng random(8);
    // Part of a band, several of them, and more rows and columns than whole bands have.
    for (const auto& [rows, columns] : {std::pair{192u, 192u}, {1100u, 544u}, {530u, 2112u}}) {
        for (const host_isa isa : demi_test::available_isas()) {
            CAPTURE(std::string(demi::name(isa)), rows, columns);
            CHECK(wrong_aligned_cast<float, float16>(thread.on(isa), rows, columns, random) == 0);
            CHECK(wrong_aligned_cast<bfloat16, float>(thread.on(isa), rows, columns, random) == 0);
            CHECK(wrong_aligned_cast<float, float8_e4m3>(thread.on(isa), rows, columns, random) ==
                  0);
            CHECK(wrong_aligned_cast<double, float>(thread.on(isa), rows, columns, random) == 0);
        }
    }
}

#if __has_include(<sys/mman.h>)

namespace {

/// Memory of a matrix between two pages that nobody may touch, flush with one of them.
class guarded_bytes {
public:
    guarded_bytes(std::size_t bytes, bool at_end) : size_((bytes / page + 3) * page) {
        memory_ = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory_ != MAP_FAILED);
        char* const first = static_cast<char*>(memory_) + page;
        REQUIRE(mprotect(first, size_ - 2 * page, PROT_READ | PROT_WRITE) == 0);
        start_ = at_end ? first + size_ - 2 * page - bytes : first;
    }
    guarded_bytes(const guarded_bytes&) = delete;
    guarded_bytes& operator=(const guarded_bytes&) = delete;
    ~guarded_bytes() { munmap(memory_, size_); }

    void* start() const { return start_; }

private:
    static constexpr std::size_t page = 4096;

    std::size_t size_;
    void* memory_;
    char* start_;
};

template <class From, class To>
void cast_between_guards(std::size_t most_cached) {
    const one_thread thread;
    for (const host_isa isa : demi_test::available_isas()) {
        matrix_rng random(9);
        for (int i = 0; i < 150; ++i) {
            const std::size_t rows = random_size(random, 1, 100);
            const std::size_t columns = random_size(random, 1, 100);
            const auto place = [&](std::size_t size, layout order, std::size_t padding) {
                const std::size_t lines = order == layout::row_major ? rows : columns;
                const std::size_t length = order == layout::row_major ? columns : rows;
                return (lines * (length + padding) - padding) * size;
            };
            const layout source_order = random_layout(random), target_order = random_layout(random);
            const std::size_t padding = random_size(random, 0, 2);
            const guarded_bytes source(place(sizeof(From), source_order, padding),
                                       random() % 2 == 0);
            const guarded_bytes target(place(sizeof(To), target_order, padding), random() % 2 == 0);
            const auto leading = [&](layout order) {
                return (order == layout::row_major ? columns : rows) + padding;
            };
            const matrix_view<const From> from(static_cast<const From*>(source.start()), rows,
                                               columns, leading(source_order), source_order);
            const matrix_view<To> to(static_cast<To*>(target.start()), rows, columns,
                                     leading(target_order), target_order);
            demi::detail::host_cast_matrix(thread.on(isa), from, to, nearest_even{}, most_cached);
        }
    }
}

}  // namespace

TEST_CASE("nothing beyond a matrix is read or written") {
    for (const std::size_t most_cached : {never_stream, always_stream}) {
        cast_between_guards<float, float16>(most_cached);
        cast_between_guards<bfloat16, float>(most_cached);
        cast_between_guards<float8_e4m3, float>(most_cached);
        cast_between_guards<float, float8_e4m3>(most_cached);
        cast_between_guards<float16, bfloat16>(most_cached);
    }
    SUCCEED();
}

#endif
