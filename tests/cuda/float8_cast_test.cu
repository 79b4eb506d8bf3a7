// SPDX-License-Identifier: MIT
#include <demi/cuda/cuda_backend.cuh>
#include <demi/kernels/float8_cast.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/reference_backend.hpp>
#include <type_traits>
#include <vector>

namespace {

using demi::float8_e4m3;
using demi::float8_e5m2;
using demi::layout;
using demi::matrix_view;

/// What a conversion leaves in memory.
template <class To>
struct outcome {
    std::vector<To> kept;
    std::vector<To> turned;
    std::vector<float> numbers;

    friend bool operator==(const outcome& a, const outcome& b) {
        return same_bits(a.kept, b.kept) && same_bits(a.turned, b.turned) &&
               same_bits(a.numbers, b.numbers);
    }
};

/// One conversion with its buffers, on any backend.
template <class From, class To, class Backend>
class conversion {
public:
    conversion(const Backend& where, std::size_t rows, std::size_t columns, std::size_t padding,
               layout order)
        : where_(where),
          rows_(rows),
          columns_(columns),
          padding_(padding),
          order_(order),
          from_(where.template make_buffer<From>(size())),
          kept_(where.template make_buffer<To>(size())),
          turned_(where.template make_buffer<To>(size())),
          numbers_(where.template make_buffer<float>(3)) {}

    void fill(const std::vector<From>& values, float scale) {
        where_.upload(values.data(), from_.data(), size());
        const float numbers[] = {scale, 0.5f, 0};
        where_.upload(numbers, numbers_.data(), 3);
    }

    std::size_t size() const { return (rows_ + columns_) * (rows_ + columns_ + padding_); }

    void cast(layout order) {
        demi::cast_scaled(where_, view(from_, order_), view(kept_, order), scaling());
    }

    void cast_transpose(layout order) {
        const layout other = order == layout::row_major ? layout::column_major : layout::row_major;
        demi::cast_transpose(where_, view(from_, order_), view(kept_, order_),
                             demi::transposed(view(turned_, other)), scaling());
    }

    outcome<To> get() const {
        outcome<To> found{std::vector<To>(size()), std::vector<To>(size()), std::vector<float>(3)};
        where_.download(kept_.data(), found.kept.data(), size());
        where_.download(turned_.data(), found.turned.data(), size());
        where_.download(numbers_.data(), found.numbers.data(), 3);
        return found;
    }

private:
    template <class Buffer>
    auto view(Buffer& buffer, layout order) const {
        using element = typename std::remove_reference_t<decltype(*buffer.data())>;
        const std::size_t leading = (order == layout::row_major ? columns_ : rows_) + padding_;
        return matrix_view<element>(buffer.data(), rows_, columns_, leading, order);
    }

    demi::float8_scaling scaling() {
        return {numbers_.data(), numbers_.data() + 1, numbers_.data() + 2};
    }

    Backend where_;
    std::size_t rows_, columns_, padding_;
    layout order_;
    typename Backend::template buffer<From> from_;
    typename Backend::template buffer<To> kept_, turned_;
    typename Backend::template buffer<float> numbers_;
};

/// Values from far below to far beyond the format, with NaN and infinity here and there.
template <class From>
std::vector<From> values_for(std::size_t count, std::mt19937_64& random) {
    using format = demi::format_traits<From>;
    using word = demi::bits_of<From>;
    std::vector<From> values(count);
    for (From& value : values) {
        const std::uint64_t bits = random();
        switch (random() % 16) {
            case 0:
                value = demi::from_bits<From>(static_cast<word>(bits));
                break;
            case 1:
                value = demi::from_bits<From>(
                    static_cast<word>((bits & format::sign_mask) | format::exponent_mask |
                                      (bits % 2 == 0 ? 0 : bits & format::mantissa_mask)));
                break;
            default:
                value = demi::convert<From>(static_cast<float>(bits % 4096) / 1024 - 2);
        }
    }
    return values;
}

/// Conversions that differ from those of the reference in a value, amax or the inverse scale.
template <class From, class To>
std::size_t differences(std::size_t largest, unsigned count) {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    std::mt19937_64 random(9);
    std::size_t different = 0;
    for (unsigned i = 0; i < count; ++i) {
        const std::size_t rows = 1 + random() % largest, columns = 1 + random() % largest;
        const std::size_t padding = random() % 2 == 0 ? 0 : random() % 9;
        const layout order = random() % 2 == 0 ? layout::row_major : layout::column_major;
        const layout target = random() % 2 == 0 ? layout::row_major : layout::column_major;
        conversion<From, To, demi::cuda_backend> device(where, rows, columns, padding, order);
        conversion<From, To, reference_backend> reference({}, rows, columns, padding, order);
        const auto values = values_for<From>(device.size(), random);
        const float scale = static_cast<float>(1 + random() % 1000) / 7;
        for (const bool transposes : {false, true}) {
            device.fill(values, scale);
            reference.fill(values, scale);
            const auto convert = [&](auto& conversion) {
                transposes ? conversion.cast_transpose(target) : conversion.cast(target);
            };
            convert(device);
            convert(reference);
            if (!(device.get() == reference.get())) ++different;
        }
    }
    return different;
}

template <class From, class To>
void check_conversions() {
    CHECK(differences<From, To>(9, 20) == 0);
    CHECK(differences<From, To>(200, 12) == 0);
}

}  // namespace

TEST_CASE("scaled conversions, their transposes and amax are those of the reference") {
    SECTION("float to E4M3") { check_conversions<float, float8_e4m3>(); }
    SECTION("float16 to E5M2") { check_conversions<demi::float16, float8_e5m2>(); }
    SECTION("bfloat16 to E4M3") { check_conversions<demi::bfloat16, float8_e4m3>(); }
}

TEST_CASE("a captured scaled conversion takes the scale of its replay") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    std::mt19937_64 random(4);
    conversion<float, float8_e4m3, demi::cuda_backend> device(where, 130, 70, 0, layout::row_major);
    conversion<float, float8_e4m3, reference_backend> reference({}, 130, 70, 0, layout::row_major);
    const auto values = values_for<float>(device.size(), random);
    device.fill(values, 1);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
    device.cast_transpose(layout::column_major);
    REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess);
    for (const float scale : {3.0f, 100.0f}) {
        device.fill(values, scale);
        reference.fill(values, scale);
        REQUIRE(cudaGraphLaunch(replay, stream.get()) == cudaSuccess);
        reference.cast_transpose(layout::column_major);
        CHECK(device.get() == reference.get());
    }
    CHECK(cudaGraphExecDestroy(replay) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}
