// SPDX-License-Identifier: MIT
/// The backend concept: the smallest model, and what is missing from things that are none.
#include <demi/core/backend.hpp>

#include <cstddef>
#include <support/catch.hpp>
#include <utility>
#include <vector>

namespace {

/// The least that models the concept: float only, one thread, in the order of the calls.
struct smallest_backend {
    template <class T>
    struct buffer {
        std::vector<T> memory;
        T* data() { return memory.data(); }
        std::size_t size() const { return memory.size(); }
    };
    template <class T>
    struct deferred {
        T value;
        T get() const { return value; }
    };

    template <class T>
    buffer<T> make_buffer(std::size_t count) const {
        return {std::vector<T>(count)};
    }
    template <class T>
    void upload(const T* host, T* memory, std::size_t count) const {
        for (std::size_t i = 0; i < count; ++i) memory[i] = host[i];
    }
    template <class T>
    void download(const T* memory, T* host, std::size_t count) const {
        upload(memory, host, count);
    }
    template <class T>
    deferred<T> read(const T* memory) const {
        return {*memory};
    }
    template <class Task>
    void invoke(const Task& task) const {
        task();
    }
    template <class Functor>
    void transform(const Functor& functor,
                   const demi::operand<const float, demi::access::read>& input,
                   const demi::operand<float, demi::access::update>& output) const {
        for (std::size_t t = 0; t < input.tensors.size(); ++t) {
            for (std::size_t i = 0; i < input.tensors[t].size(); ++i) {
                functor(input.tensors[t][i], output.tensors[t][i]);
            }
        }
    }
    template <class Reducer>
    void reduce(typename Reducer::value_type* result, const Reducer& reducer,
                const demi::operand<const float, demi::access::read>& input) const {
        typename Reducer::template partial<float> partial{};
        for (const auto& tensor : input.tensors) {
            for (const float element : tensor) reducer.accumulate(partial, element);
        }
        *result = reducer.finish(partial);
    }
    template <class Epilogue>
    void gemm(float alpha, demi::matrix_view<const float> a, demi::matrix_view<const float> b,
              float beta, demi::matrix_view<float> c, const Epilogue& epilogue) const {
        for (std::size_t row = 0; row < c.rows(); ++row) {
            for (std::size_t column = 0; column < c.columns(); ++column) {
                float sum = 0;
                for (std::size_t k = 0; k < a.columns(); ++k) sum += a(row, k) * b(k, column);
                const float former = beta == 0 ? 0 : beta * c(row, column);
                c(row, column) = epilogue(alpha * sum + former, {row, column});
            }
        }
    }
};

struct without_reduce : smallest_backend {
    void reduce() = delete;
};
struct without_deferred_read : smallest_backend {
    template <class T>
    T read(const T* memory) const {
        return *memory;
    }
};
struct not_copyable : smallest_backend {
    not_copyable() = default;
    not_copyable(const not_copyable&) = delete;
};

struct sum {
    using value_type = float;
    template <class Real>
    struct partial {
        Real total{};
    };
    template <class Real>
    void accumulate(partial<Real>& into, Real value) const {
        into.total += value;
    }
    template <class Real>
    void join(partial<Real>& into, const partial<Real>& other) const {
        into.total = into.total + other.total;
    }
    template <class Real>
    float finish(const partial<Real>& from) const {
        return from.total;
    }
    float combine(float left, float right) const { return left + right; }
};

struct sum_without_combine {
    using value_type = float;
    template <class Real>
    using partial = sum::partial<Real>;
    template <class Real>
    void accumulate(partial<Real>&, Real) const {}
    template <class Real>
    void join(partial<Real>&, const partial<Real>&) const {}
    template <class Real>
    float finish(const partial<Real>&) const {
        return 0;
    }
};

struct sum_without_join {
    using value_type = float;
    template <class Real>
    using partial = sum::partial<Real>;
    template <class Real>
    void accumulate(partial<Real>&, Real) const {}
    template <class Real>
    float finish(const partial<Real>&) const {
        return 0;
    }
    float combine(float left, float) const { return left; }
};

}  // namespace

TEST_CASE("the smallest model is a backend, and each missing requirement is noticed") {
    CHECK(demi::backend<smallest_backend>);
    CHECK_FALSE(demi::backend<int>);
    CHECK_FALSE(demi::backend<without_reduce>);
    CHECK_FALSE(demi::backend<without_deferred_read>);
    CHECK_FALSE(demi::backend<not_copyable>);
}

TEST_CASE("a reducer needs every one of its functions") {
    CHECK(demi::lane_reducer<sum, float>);
    CHECK_FALSE(demi::lane_reducer<sum_without_combine, float>);
    CHECK_FALSE(demi::lane_reducer<sum_without_join, float>);
    CHECK_FALSE(demi::lane_reducer<int, float>);
}

TEST_CASE("the interface of a backend is enough to run a pass, a reduction and a product") {
    const smallest_backend where;
    auto memory = where.make_buffer<float>(4);
    CHECK(memory.data()[3] == 0);
    const float host[] = {1, 2, 3, 4};
    where.upload(host, memory.data(), 4);

    const demi::tensor_list<float> list(memory.memory);
    const demi::tensor_list<const float> input(memory.memory);
    where.transform([](float value, float& in_place) { in_place = value + in_place; },
                    demi::in(input), demi::inout(list));
    auto total = where.make_buffer<float>(1);
    where.reduce(total.data(), sum{}, demi::in(input));
    CHECK(where.read(std::as_const(total).memory.data()).get() == 20);

    const demi::matrix_view<const float> a(memory.data(), 2, 2);
    std::vector<float> product(4);
    where.gemm(1, a, demi::transposed(a), 0, demi::matrix_view<float>(product.data(), 2, 2),
               demi::no_epilogue{});
    CHECK(product == std::vector<float>{20, 44, 44, 100});
}

TEST_CASE("the empty epilogue changes no bit and starts at the first element") {
    CHECK(demi::no_epilogue{}(1.5f, {3, 4}) == 1.5f);
    CHECK(demi::no_epilogue{}(-2.5, demi::matrix_position{}) == -2.5);
    CHECK(demi::matrix_position{}.row == 0);
    CHECK(demi::matrix_position{}.column == 0);
}
