// SPDX-License-Identifier: MIT
#include <demi/cuda/cuda_backend.cuh>
#include <demi/training/adamw.hpp>
#include <demi/training/optimizer.hpp>

#include <cuda/arena.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <support/catch.hpp>
#include <support/reference_backend.hpp>
#include <vector>

namespace {

struct add_one {
    template <class Real>
    DEMI_HD void operator()(Real& value) const {
        value = value + static_cast<Real>(1);
    }
};

struct set_number {
    int* memory;
    int value;

    DEMI_HD void operator()() const { *memory = value; }
};

struct increase {
    int* memory;

    DEMI_HD void operator()() const { ++*memory; }
};

/// Records what `work` gives to a stream and replays it. A call that waits would make it throw.
class replayed {
public:
    replayed(demi::cuda_stream_ref stream, const std::function<void()>& work) : stream_(stream) {
        REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
        work();
        REQUIRE(cudaStreamEndCapture(stream.get(), &graph_) == cudaSuccess);
        // A replay must not free what was allocated outside.
        CHECK(nodes_of(cudaGraphNodeTypeMemAlloc) + nodes_of(cudaGraphNodeTypeMemFree) == 0);
        REQUIRE(cudaGraphInstantiate(&executable_, graph_, 0) == cudaSuccess);
    }
    ~replayed() {
        cudaGraphExecDestroy(executable_);
        cudaGraphDestroy(graph_);
    }
    replayed(const replayed&) = delete;

    std::size_t nodes_of(cudaGraphNodeType wanted) const {
        std::size_t count = 0;
        REQUIRE(cudaGraphGetNodes(graph_, nullptr, &count) == cudaSuccess);
        std::vector<cudaGraphNode_t> nodes(count);
        REQUIRE(cudaGraphGetNodes(graph_, nodes.data(), &count) == cudaSuccess);
        std::size_t found = 0;
        for (const auto node : nodes) {
            cudaGraphNodeType type{};
            REQUIRE(cudaGraphNodeGetType(node, &type) == cudaSuccess);
            if (type == wanted) ++found;
        }
        return found;
    }

    void operator()() const { REQUIRE(cudaGraphLaunch(executable_, stream_.get()) == cudaSuccess); }

private:
    demi::cuda_stream_ref stream_;
    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t executable_ = nullptr;
};

/// Lists too long for the parameters of a kernel, over one piece of memory.
class long_lists {
public:
    explicit long_lists(const demi::cuda_backend& where)
        : memory_(where.make_buffer<float>(1000)) {}

    /// The first `count` elements, one by one.
    demi::tensor_list<float> list(std::size_t count) {
        demi::tensor_list<float> elements;
        for (std::size_t i = 0; i < count; ++i) {
            const std::span<float> one(memory_.data() + i, 1);
            elements.add(one);
        }
        return elements;
    }

    const float* data() const { return memory_.data(); }

private:
    demi::cuda_buffer<float> memory_;
};

}  // namespace

TEST_CASE("a value on its way is the one of its place in the order") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    auto number = where.make_buffer<int>(1);
    std::vector<demi::cuda_backend::deferred<int>> kept;
    for (int i = 0; i < 50; ++i) {
        where.invoke(set_number{number.data(), i});
        const auto value = where.read(number.data());
        if (i % 2 == 0) kept.push_back(value);  // the others are dropped before they arrive
    }
    for (int i = 0; i < 25; ++i) CHECK(kept[static_cast<std::size_t>(i)].get() == 2 * i);
    kept.clear();
    where.invoke(set_number{number.data(), 99});
    CHECK(where.read(number.data()).get() == 99);
}

TEST_CASE("a value on its way outlives the backend that sent it") {
    const demi::cuda_stream stream;
    auto where = std::make_unique<demi::cuda_backend>(stream);
    auto number = where->make_buffer<int>(1);
    where->invoke(set_number{number.data(), 5});
    const auto value = where->read(number.data());
    where.reset();
    CHECK(value.get() == 5);
}

TEST_CASE("a captured read gives the value of the last replay") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    auto number = where.make_buffer<int>(1);
    std::vector<demi::cuda_backend::deferred<int>> values;
    const replayed replay(stream, [&] {
        for (int i = 0; i < 20; ++i) {
            where.invoke(increase{number.data()});
            values.push_back(where.read(number.data()));
            static_cast<void>(where.read(number.data()));
        }
    });
    for (int replays = 1; replays <= 3; ++replays) {
        replay();
        for (int i = 0; i < 20; ++i) {
            CHECK(values[static_cast<std::size_t>(i)].get() == 20 * (replays - 1) + i + 1);
        }
        // A read outside the graph takes no place that the graph writes to.
        const auto now = where.read(number.data());
        replay();
        CHECK(now.get() == 20 * replays);
        where.invoke(set_number{number.data(), 20 * replays});
    }
}

TEST_CASE("a table that a graph uses stays, and a new one does not disturb a capture") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    long_lists lists(where);
    const auto pass = [&](std::size_t count) {
        where.transform(add_one{}, demi::inout(lists.list(count)));
    };
    std::vector<float> expected(1000);
    const auto expect_pass = [&](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) ++expected[i];
    };
    const auto eager = [&](std::size_t count) {
        pass(count);
        expect_pass(count);
    };
    const auto found = [&] {
        std::vector<float> values(1000);
        where.download(lists.data(), values.data(), values.size());
        return values;
    };

    // More than the cache keeps of those outside graphs.
    for (std::size_t count = 110; count < 145; ++count) eager(count);
    const replayed replay(stream, [&] {
        pass(700);
        pass(120);
    });
    CHECK(found() == expected);
    for (std::size_t count = 145; count < 180; ++count) eager(count);
    for (int i = 0; i < 2; ++i) {
        replay();
        expect_pass(700);
        expect_pass(120);
    }
    eager(144);
    CHECK(found() == expected);
}

namespace {

/// Many tensors under mixed_float16.
struct many_tensors {
    explicit many_tensors(const demi::cuda_backend& where)
        : weights(where, layout(), 1),
          gradients(where, layout(), 2),
          optimizer(where, demi::adamw{.learning_rate = 0.01f}, small(weights).device),
          scaler(where, demi::dynamic_loss_scale{.initial_scale = 1024, .growth_interval = 2}) {
        small(gradients);
    }

    static arena_layout layout() {
        std::vector<std::size_t> sizes;
        for (std::size_t i = 0; i < 700; ++i) sizes.push_back(i % 11 == 0 ? 0 : i % 70);
        return {sizes, {0, 1, 8}};
    }

    static arena<demi::float16>& small(arena<demi::float16>& values) {
        values.make_small();
        return values;
    }

    auto step() {
        return optimizer.step(gradients.device, scaler, demi::clip_by_global_norm{1.0f});
    }

    arena<demi::float16> weights;
    arena<demi::float16> gradients;
    demi::optimizer<demi::adamw, demi::mixed_float16, demi::cuda_backend> optimizer;
    demi::loss_scaler<demi::cuda_backend> scaler;
};

std::vector<demi::float16> downloaded(const demi::cuda_backend& where,
                                      const demi::tensor_list<demi::float16>& list) {
    std::vector<demi::float16> values(list.element_count());
    std::size_t at = 0;
    for (const auto tensor : list) {
        where.download(tensor.data(), values.data() + at, tensor.size());
        at += tensor.size();
    }
    return values;
}

}  // namespace

TEST_CASE("a captured step of many tensors gives the bits of an eager one") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    many_tensors eager(where);
    many_tensors captured(where);
    std::vector<demi::cuda_backend::deferred<demi::step_report>> reports;
    const replayed replay(stream, [&] { reports.push_back(captured.step()); });
    CHECK(replay.nodes_of(cudaGraphNodeTypeKernel) == 4);
    for (int step = 0; step < 4; ++step) {
        CAPTURE(step);
        if (step == 2) {
            for (auto* model : {&eager, &captured}) {
                model->gradients.host[650][4] = demi::from_bits<demi::float16>(0x7c00);
                model->gradients.upload();
            }
        }
        replay();
        const auto expected = eager.step().get();
        const auto found = reports[0].get();
        CHECK(expected.applied() == (step < 2));
        CHECK(found.reason == expected.reason);
        CHECK(found.first_non_finite == expected.first_non_finite);
        CHECK(found.next_loss_scale == expected.next_loss_scale);
        CHECK(same_bits(found.gradient_norm, expected.gradient_norm));
        CHECK(same_bits(downloaded(where, captured.weights.device),
                        downloaded(where, eager.weights.device)));
    }
    CHECK(captured.optimizer.steps() == 2);
}

namespace {

/// What an engine with its own optimizer does, on the given lists.
template <class Backend>
struct engine_steps {
    Backend where;
    demi::loss_scaler<Backend> scaler{
        where, demi::dynamic_loss_scale{.initial_scale = 256, .growth_interval = 2}};

    auto step(const demi::tensor_list<float>& floats, const demi::tensor_list<double>& doubles) {
        scaler.unscale(floats, doubles);
        const bool safe = scaler.step_is_safe();
        return std::pair(safe, scaler.update().get());
    }
};

}  // namespace

TEST_CASE("an engine's own steps with a scaler are those of the reference") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    std::vector<std::size_t> sizes(130, 9);
    arena<float> floats(where, {sizes, {0, 2}}, 5);
    arena<double> doubles(where, {{3000, 0, 1}, {1}}, 6);
    floats.make_small();
    doubles.make_small();
    engine_steps<demi::cuda_backend> device{where};
    engine_steps<reference_backend> reference{reference_backend()};
    for (int step = 0; step < 5; ++step) {
        CAPTURE(step);
        if (step == 1) doubles.host[0][2999] = -INFINITY;
        if (step == 2) doubles.host[0][2999] = 1;
        doubles.upload();
        const auto [safe, report] = device.step(floats.device, doubles.device);
        const auto [expected_safe, expected] = reference.step(floats.host, doubles.host);
        CHECK(safe == expected_safe);
        CHECK(safe == (step != 1));
        CHECK(report.first_non_finite == expected.first_non_finite);
        CHECK(report.next_loss_scale == expected.next_loss_scale);
        CHECK(floats.agrees());
        CHECK(doubles.agrees());
        floats.upload();
    }
}
