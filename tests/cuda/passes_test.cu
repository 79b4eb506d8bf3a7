// SPDX-License-Identifier: MIT
#include <demi/cuda/cuda_backend.cuh>
#include <demi/kernels/cast.hpp>
#include <demi/kernels/gradient_statistics.hpp>

#include <cuda/arena.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <support/catch.hpp>
#include <support/reference_backend.hpp>
#include <type_traits>
#include <vector>

namespace {

/// Every value that it gives takes one rounding, so that contraction cannot show.
struct add_and_halve {
    template <class Real>
    DEMI_HD void operator()(Real added, Real& halved, Real& sum) const {
        sum = added + halved;
        halved = halved * static_cast<Real>(0.5);
    }
};

std::vector<std::size_t> random_sizes(std::size_t count, std::size_t most) {
    std::mt19937 random(static_cast<unsigned>(count));
    std::vector<std::size_t> sizes(count);
    for (auto& size : sizes) size = random() % 7 == 0 ? 0 : random() % most;
    return sizes;
}

/// Tensors around the sizes of a group and a chunk; both are powers of two.
std::vector<std::size_t> edge_sizes() {
    std::vector<std::size_t> sizes;
    for (std::size_t size = 0; size < 40; ++size) sizes.push_back(size);
    for (const std::size_t power : {256, 512, 1024, 2048, 4096, 8192}) {
        for (const std::size_t size : {power - 1, power, power + 1, power + 7}) {
            sizes.push_back(size);
        }
    }
    return sizes;
}

/// Lists of no, one, few and many tensors; the last ones do not fit into a kernel's parameters.
const std::vector<std::vector<std::size_t>>& size_lists() {
    static const std::vector<std::vector<std::size_t>> lists{{},
                                                             {0},
                                                             {1},
                                                             {7},
                                                             {20'000},
                                                             {300, 0, 17},
                                                             {0, 0, 0},
                                                             random_sizes(60, 300),
                                                             random_sizes(700, 60),
                                                             edge_sizes()};
    return lists;
}

/// The same pass on the device and by the reference; true when all bits are the same.
template <class A, class B, class C, class Rounding = demi::nearest_even>
bool same_transform(const demi::cuda_backend& where, const std::vector<std::size_t>& sizes,
                    const std::vector<std::vector<std::size_t>>& offsets, Rounding rounding = {}) {
    arena<A> a(where, {sizes, offsets[0]}, 1);
    arena<B> b(where, {sizes, offsets[1]}, 2);
    arena<C> c(where, {sizes, offsets[2]}, 3);
    demi::transform(where, add_and_halve{}, demi::in(a.device), demi::inout(b.device, rounding),
                    demi::out(c.device, rounding));
    demi::transform(reference_backend(), add_and_halve{}, demi::in(a.host),
                    demi::inout(b.host, rounding), demi::out(c.host, rounding));
    return a.agrees() && b.agrees() && c.agrees();
}

/// Every offset of one operand with other offsets of the two others, and once with the same.
std::vector<std::vector<std::size_t>> all_offsets() {
    std::vector<std::vector<std::size_t>> offsets(3);
    for (std::size_t i = 0; i < 18; ++i) {
        for (const std::size_t step : {0, 1, 4, 9}) {
            offsets[0].push_back(i);
            offsets[1].push_back((i + step) % 18);
            offsets[2].push_back((i + 2 * step) % 18);
        }
    }
    return offsets;
}

template <class A, class B, class C, class Rounding = demi::nearest_even>
void compare_formats(Rounding rounding = {}) {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    for (const auto& sizes : size_lists()) {
        CAPTURE(sizes.size());
        CHECK(same_transform<A, B, C>(where, sizes, {{0}, {0}, {0}}, rounding));
    }
    const auto offsets = all_offsets();
    for (const std::size_t size : {1, 15, 16, 17, 97, 2100}) {
        CAPTURE(size);
        const std::vector<std::size_t> sizes(offsets[0].size(), size);
        CHECK(same_transform<A, B, C>(where, sizes, offsets, rounding));
    }
}

/// Reads its factor from device memory; a factor of 0 skips the pass.
struct multiply_by {
    struct loaded {
        float factor;

        DEMI_HD bool skip() const { return factor == 0; }
        template <class Real>
        DEMI_HD void operator()(Real& value) const {
            value = value * static_cast<Real>(factor);
        }
    };

    const float* factor;

    DEMI_HD loaded load() const { return {*factor}; }
};

struct set_to {
    float* memory;
    float value;

    DEMI_HD void operator()() const { *memory = value; }
};

/// Casts every pattern of `From` and counts the values that are not those of `convert`.
template <class From, class To>
std::size_t wrong_casts(const std::vector<demi::bits_of<From>>& patterns) {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    auto from = where.make_buffer<From>(patterns.size());
    auto to = where.make_buffer<To>(patterns.size());
    std::vector<From> values;
    for (const auto bits : patterns) values.push_back(demi::from_bits<From>(bits));
    where.upload(values.data(), from.data(), values.size());
    demi::cast(where, from, to);
    std::vector<To> found(values.size());
    where.download(to.data(), found.data(), found.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (demi::to_bits(found[i]) != demi::convert_bits<To, From>(patterns[i])) ++wrong;
    }
    return wrong;
}

template <class T>
std::vector<demi::bits_of<T>> every_pattern() {
    std::vector<demi::bits_of<T>> patterns;
    for (std::uint32_t bits = 0; bits < (1u << demi::format_traits<T>::bits); ++bits) {
        patterns.push_back(static_cast<demi::bits_of<T>>(bits));
    }
    return patterns;
}

/// Floats at the edges of narrower formats, and NaN of every kind among numbers.
std::vector<std::uint32_t> float_patterns() {
    std::mt19937 random(1);
    std::vector<std::uint32_t> patterns;
    for (std::uint32_t upper = 0; upper < 0x10000; upper += 3) {
        patterns.push_back(upper << 16 | (random() % 3 == 0 ? 0x8000u : random() & 0xffffu));
    }
    return patterns;
}

}  // namespace

TEST_CASE("a transform gives the bits of the reference in every format") {
    SECTION("16 bits and float") { compare_formats<demi::float16, float, demi::bfloat16>(); }
    SECTION("double") { compare_formats<double, float, double>(); }
    SECTION("narrow") { compare_formats<demi::float8_e5m2, demi::bfloat16, demi::float8_e4m3>(); }
    SECTION("the types of the CUDA headers") { compare_formats<__half, __nv_bfloat16, __half>(); }
}

TEST_CASE("a transform rounds as its operands say") {
    SECTION("toward zero") {
        compare_formats<float, demi::float16, demi::bfloat16>(demi::toward_zero{});
    }
    SECTION("at random, by seed, step, tensor and index") {
        compare_formats<float, demi::bfloat16, demi::float8_e5m2>(demi::stochastic{7, 3});
    }
}

namespace {

/// The random bits that a pass uses around an index of 2^32.
struct note_random_bits {
    static constexpr std::uint64_t first = (std::uint64_t{1} << 32) - 5;

    demi::stochastic rounding;
    std::uint32_t* bits;

    __device__ void operator()() const {
        const demi::detail::tensor_rounding<demi::stochastic> of_tensor(rounding, 3);
        const auto of_group = of_tensor.from(first);
        for (std::size_t i = 0; i < 10; ++i) bits[i] = of_group(i).bits;
    }
};

}  // namespace

TEST_CASE("random bits go on beyond 32 bits of an index") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    auto bits = where.make_buffer<std::uint32_t>(10);
    where.invoke(note_random_bits{{7, 9}, bits.data()});
    std::vector<std::uint32_t> found(10);
    where.download(bits.data(), found.data(), found.size());
    for (std::size_t i = 0; i < 10; ++i) {
        CHECK(found[i] ==
              demi::random_bits(demi::random_key(7, 9, 3), note_random_bits::first + i));
    }
}

TEST_CASE("a functor is loaded from device memory and may skip") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    auto factor = where.make_buffer<float>(1);
    arena<float> values(where, {{1000, 3, 70}, {1}}, 4);
    where.transform(multiply_by{factor.data()}, demi::inout(values.device));
    CHECK(values.agrees());
    where.invoke(set_to{factor.data(), 4});
    where.transform(multiply_by{factor.data()}, demi::inout(values.device));
    CHECK(!values.agrees());
    const float four = 4;
    reference_backend().transform(multiply_by{&four}, demi::inout(values.host));
    CHECK(values.agrees());
}

TEST_CASE("casts are those of convert, what a NaN carries included") {
    const auto floats = float_patterns();
    CHECK(wrong_casts<float, demi::float16>(floats) == 0);
    CHECK(wrong_casts<float, demi::bfloat16>(floats) == 0);
    CHECK(wrong_casts<float, demi::float8_e4m3>(floats) == 0);
    CHECK(wrong_casts<float, float>(floats) == 0);
    CHECK(wrong_casts<demi::float16, float>(every_pattern<demi::float16>()) == 0);
    CHECK(wrong_casts<demi::float16, demi::float16>(every_pattern<demi::float16>()) == 0);
    CHECK(wrong_casts<demi::bfloat16, float>(every_pattern<demi::bfloat16>()) == 0);
    CHECK(wrong_casts<demi::bfloat16, demi::float16>(every_pattern<demi::bfloat16>()) == 0);
    CHECK(wrong_casts<demi::float8_e5m2, float>(every_pattern<demi::float8_e5m2>()) == 0);
}

namespace {

struct dot_product {
    using value_type = double;
    template <class Real>
    struct partial {
        double sum = 0;
    };
    template <class Real>
    DEMI_HD void accumulate(partial<Real>& into, Real a, Real b) const {
        into.sum += static_cast<double>(a) * static_cast<double>(b);
    }
    template <class Real>
    DEMI_HD void join(partial<Real>& into, const partial<Real>& other) const {
        into.sum += other.sum;
    }
    template <class Real>
    DEMI_HD value_type finish(const partial<Real>& from) const {
        return from.sum;
    }
    DEMI_HD value_type combine(value_type left, value_type right) const { return left + right; }
};

struct counted_sum {
    double sum = 0;
    std::uint64_t quick = 0;
    std::uint64_t elements = 0;
};

/// Sums in float while the sums are small, and says how often.
struct quick_sum {
    struct quick {
        template <class Real>
        struct partial {
            float sum = 0;
            unsigned elements = 0;
        };
        template <class Real>
        DEMI_HD void accumulate(partial<Real>& into, Real value) const {
            into.sum += value;
            ++into.elements;
        }
    };

    using value_type = counted_sum;
    template <class Real>
    struct partial : counted_sum {};
    template <class Real>
    DEMI_HD void accumulate(partial<Real>& into, Real value) const {
        into.sum += static_cast<double>(value);
        ++into.elements;
    }
    template <class Real>
    DEMI_HD bool absorb(partial<Real>& into, const quick::partial<Real>& few) const {
        if (few.elements > 16 || few.sum > 1000) return false;
        into.sum += static_cast<double>(few.sum);
        into.elements += few.elements;
        if (few.elements != 0) ++into.quick;
        return true;
    }
    template <class Real>
    DEMI_HD void join(partial<Real>& into, const partial<Real>& other) const {
        static_cast<counted_sum&>(into) = combine(into, other);
    }
    template <class Real>
    DEMI_HD value_type finish(const partial<Real>& from) const {
        return from;
    }
    DEMI_HD value_type combine(const value_type& left, const value_type& right) const {
        return {left.sum + right.sum, left.quick + right.quick, left.elements + right.elements};
    }
};

/// Compares what a device learns about gradients with what the reference does.
template <class T>
void compare_statistics(const demi::cuda_backend& where, arena<T>& gradients) {
    gradients.upload();
    const auto found = demi::measure_gradients(where, gradients.device);
    const auto expected = demi::measure_gradients(reference_backend(), gradients.host);
    CHECK(found.nan_count == expected.nan_count);
    CHECK(found.infinity_count == expected.infinity_count);
    CHECK(found.first_kind == expected.first_kind);
    CHECK(found.largest_magnitude == expected.largest_magnitude);
    if (expected.finite()) {
        CHECK(std::fabs(found.sum_of_squares - expected.sum_of_squares) <=
              0x1p-18 * expected.sum_of_squares);
    } else {
        CHECK(found.first_non_finite == expected.first_non_finite);
    }
}

template <class T>
void compare_all_statistics() {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    for (const auto& sizes : size_lists()) {
        CAPTURE(sizes.size());
        arena<T> gradients(where, {sizes, {0, 1, 0, 5}}, 8);
        if (std::is_same_v<T, double>) gradients.make_small();
        compare_statistics(where, gradients);
        CHECK(same_bits(demi::measure_gradients(where, gradients.device).sum_of_squares,
                        demi::measure_gradients(where, gradients.device).sum_of_squares));
        std::mt19937_64 random(9);
        for (unsigned planted = 0; planted < 2 && gradients.host.element_count() != 0; ++planted) {
            std::span<T> tensor;
            while (tensor.empty()) tensor = gradients.host[random() % sizes.size()];
            // The last element too: it is the furthest from the first pass over a tensor.
            tensor[planted == 0 ? tensor.size() - 1 : random() % tensor.size()] =
                random_non_finite<T>(random);
            compare_statistics(where, gradients);
        }
    }
}

}  // namespace

TEST_CASE("gradient statistics are those of the reference, the first bad value included") {
    SECTION("float") { compare_all_statistics<float>(); }
    SECTION("float16") { compare_all_statistics<demi::float16>(); }
    SECTION("bfloat16") { compare_all_statistics<demi::bfloat16>(); }
    SECTION("float8") { compare_all_statistics<demi::float8_e5m2>(); }
    SECTION("double") { compare_all_statistics<double>(); }
}

TEST_CASE("each tensor's statistics are those of the reference, in list order") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    const auto compare = [&](const auto& gradients) {
        const auto found = demi::measure_each_gradient(where, gradients.device);
        const auto expected = demi::measure_each_gradient(reference_backend(), gradients.host);
        REQUIRE(found.size() == expected.size());
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
            wrong += found[i].largest_magnitude != expected[i].largest_magnitude;
            wrong += found[i].nan_count != expected[i].nan_count;
            wrong += found[i].infinity_count != expected[i].infinity_count;
            wrong += found[i].first_kind != expected[i].first_kind;
            wrong += !expected[i].finite() &&
                     !(found[i].first_non_finite == expected[i].first_non_finite);
            wrong += expected[i].finite() &&
                     !(std::fabs(found[i].sum_of_squares - expected[i].sum_of_squares) <=
                       0x1p-18 * expected[i].sum_of_squares);
        }
        CHECK(wrong == 0);
    };
    SECTION("of many tensors, of which some are empty and the results do not fit the workspace") {
        std::vector<std::size_t> sizes;
        for (std::size_t i = 0; i < 2500; ++i) sizes.push_back(i % 7 == 0 ? 0 : i * i % 61);
        sizes[1200] = 40'000;
        arena<demi::float16> gradients(where, {sizes, {0, 1, 0, 5}}, 13);
        std::mt19937_64 random(14);
        for (int planted = 0; planted < 50; ++planted) {
            const auto tensor = gradients.host[random() % sizes.size()];
            if (tensor.empty()) continue;
            tensor[random() % tensor.size()] = random_non_finite<demi::float16>(random);
        }
        gradients.host[1200][39'999] = demi::float16(NAN);
        gradients.upload();
        compare(gradients);
    }
    SECTION("of tensors whose blocks take several steps each") {
        arena<double> gradients(where, {{2'200'000, 0, 3}, {0, 0, 1}}, 15);
        gradients.make_small();
        gradients.host[0][2'199'999] = -INFINITY;
        gradients.upload();
        CHECK(demi::detail::steps_per_chunk(gradients.host.spans(), 2048) == 2);
        compare(gradients);
    }
    SECTION("of none") {
        const demi::tensor_list<const float> none;
        CHECK(demi::measure_each_gradient(where, none).empty());
    }
}

TEST_CASE("a reducer of one's own takes several operands") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    for (const auto& sizes : size_lists()) {
        CAPTURE(sizes.size());
        arena<demi::float8_e4m3> a(where, {sizes, {0, 3}}, 10);
        arena<float> b(where, {sizes, {0, 3, 5}}, 11);
        for (const auto tensor : b.host) {
            for (auto& value : tensor) value = std::floor(std::fmod(value, 64.0f));
        }
        b.upload();
        // Sums of multiples of 2^-9 below 2^53 of them: no order of additions shows.
        CHECK(demi::reduce(where, dot_product{}, demi::in(a.device), demi::in(b.device)) ==
              demi::reduce(reference_backend(), dot_product{}, demi::in(a.host), demi::in(b.host)));
    }
}

TEST_CASE("a quick sum is taken where it suffices") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    arena<float> values(where, {{30'000, 5, 9'000}, {0, 0, 1}}, 12);
    for (std::size_t tensor = 0; tensor < 3; ++tensor) {
        const auto elements = values.host[tensor];
        for (std::size_t i = 0; i < elements.size(); ++i) {
            elements[i] = static_cast<float>(i % 50) + (i > 20'000 ? 5000 : 0);
        }
    }
    values.upload();
    const auto found = demi::reduce(where, quick_sum{}, demi::in(values.device));
    const auto expected = demi::reduce(reference_backend(), quick_sum{}, demi::in(values.host));
    CHECK(found.sum == expected.sum);
    CHECK(found.elements == 39'005);
    CHECK(found.quick >= 20'000 / 16);
    CHECK(found.quick < 39'005 / 16);
}

TEST_CASE("tables of tensors hold sizes beyond 32 bits") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    constexpr std::size_t group = 4;
    constexpr std::size_t chunk = 2048;
    const std::vector<std::size_t> sizes{(std::size_t{1} << 40) + 3, 0, 5,
                                         std::size_t{1} << 33,       1, (std::size_t{1} << 32) - 1};
    std::vector<std::span<const float>> spans;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        // No memory is there: a table only reckons.
        spans.emplace_back(reinterpret_cast<const float*>((i + 1) << 44) + i, sizes[i]);
    }
    const demi::operand<const float, demi::access::read> operand{spans};
    const auto table = demi::detail::make_tensor_table<1>(where.context(), group, chunk, operand);
    REQUIRE(table.tensors == sizes.size());
    std::uint64_t chunks = 0;
    for (std::uint32_t tensor = 0; tensor < table.tensors; ++tensor) {
        const auto& entry = table.entries()[tensor];
        CAPTURE(tensor);
        CHECK(entry.tensor == tensor);
        CHECK(entry.first_chunk == chunks);
        CHECK(entry.size == sizes[tensor]);
        if (entry.size == 0) {
            CHECK(table.end_of_chunks(tensor) == chunks);
            continue;
        }
        CHECK(entry.in_groups == 1);
        CHECK((entry.head + reinterpret_cast<std::uintptr_t>(entry.data[0]) / sizeof(float)) %
                  group ==
              0);
        const std::uint64_t after_head = entry.size > entry.head ? entry.size - entry.head : 1;
        const std::uint64_t last = entry.first_chunk + (after_head - 1) / chunk;
        for (std::uint32_t from = 0; from <= tensor; ++from) {
            CHECK(table.tensor_of_chunk(entry.first_chunk, from) == tensor);
            CHECK(table.tensor_of_chunk(last, from) == tensor);
        }
        chunks = last + 1;
        CHECK(table.end_of_chunks(tensor) == chunks);
    }
    CHECK(table.chunks == chunks);
}
