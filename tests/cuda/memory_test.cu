// SPDX-License-Identifier: MIT
#include <demi/batching/plan_batch.hpp>
#include <demi/cuda/cuda_backend.cuh>
#include <demi/cuda/memory_probe.hpp>
#include <demi/kernels/transform.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// Takes so much memory that about `left` bytes of the device are free.
class ballast {
public:
    explicit ballast(std::size_t left) {
        const std::size_t free = demi::cuda_memory_probe().free_bytes();
        if (free > left) demi::detail::check_cuda(cudaMalloc(&memory_, free - left), "cudaMalloc");
    }
    ~ballast() { static_cast<void>(cudaFree(memory_)); }
    ballast(const ballast&) = delete;
    ballast& operator=(const ballast&) = delete;

private:
    void* memory_ = nullptr;
};

struct add_one {
    template <class Real>
    DEMI_HD void operator()(Real& value) const {
        value = value + Real(1);
    }
};

/// Whether the device still does its work, without an error left over.
bool works(const demi::cuda_backend& where) {
    if (cudaPeekAtLastError() != cudaSuccess) return false;
    auto numbers = where.make_buffer<float>(1000);
    const std::span<float> all(numbers.data(), numbers.size());
    const demi::tensor_list<float> list(all);
    demi::transform(where, add_one{}, demi::inout(list));
    return where.read(&all[999]).get() == 1.0f;
}

struct add_three {
    template <class Real>
    DEMI_HD void operator()(Real input, Real& output) const {
        output = output + input + Real(3);
    }
};

/// A training step whose activations and gradients grow with the batch.
struct training_step {
    static constexpr std::size_t features = std::size_t{96} * 1024;
    static constexpr std::size_t bytes_per_sample = features * (sizeof(float) + 2);

    demi::cuda_backend where;

    void run(std::size_t batch) const {
        auto activations = where.make_buffer<demi::float16>(batch * features);
        auto gradients = where.make_buffer<float>(batch * features);
        // A part of the work stands for all of it.
        constexpr std::size_t part = 4096;
        const std::span<const demi::float16> inputs(activations.data(), part);
        const std::span<float> outputs(gradients.data() + gradients.size() - part, part);
        const demi::tensor_list<const demi::float16> from(inputs);
        const demi::tensor_list<float> to(outputs);
        demi::transform(where, add_three{}, demi::in(from), demi::inout(to));
        CHECK(where.read(&outputs[part - 1]).get() == 3.0f);
    }
};

std::size_t refusals(const demi::batch_plan& plan) {
    return static_cast<std::size_t>(
        std::count_if(plan.certificate.trials.begin(), plan.certificate.trials.end(),
                      [](const demi::trial_record& trial) {
                          return trial.verdict == demi::trial_verdict::out_of_memory;
                      }));
}

/// The certified batch runs, the smallest one that is known to fail is refused, and the runtime is
/// clean after either.
void check_plan(const demi::batch_plan& plan, const training_step& step,
                demi::cuda_memory_probe& probe) {
    CAPTURE(demi::describe(plan));
    CHECK(refusals(plan) > 3);
    CHECK(plan.micro_batch > 100);
    CHECK(plan.peak >= plan.micro_batch * training_step::bytes_per_sample);
    CHECK(plan.not_returned == 0);
    CHECK(works(step.where));
    step.run(plan.micro_batch);
    probe.recover();
    REQUIRE(plan.certificate.failure.has_value());
    CHECK(plan.certificate.failure->size == plan.micro_batch + 1);
    CHECK(plan.certificate.failure->verdict == demi::trial_verdict::out_of_memory);
    CHECK_THROWS_AS(step.run(plan.certificate.failure->size), demi::out_of_memory);
    CHECK(works(step.where));
}

/// Begins so high that the first trials are refused, each at another place.
demi::batch_plan_settings without_margin() {
    demi::batch_plan_settings settings;
    settings.margin = 0;
    settings.start = 4000;
    settings.updates_per_trial = 1;
    return settings;
}

}  // namespace

TEST_CASE("the planner finds the largest batch through refusals of the memory pool", "[memory]") {
    const demi::cuda_stream stream;
    const training_step step{demi::cuda_backend(stream)};
    REQUIRE(works(step.where));
    const ballast taken(200 * mebibyte);
    demi::cuda_memory_probe probe;
    const auto plan = demi::plan_batch(probe, without_margin(),
                                       [&](demi::trial& trial) { step.run(trial.batch_size()); });
    check_plan(plan, step, probe);
    CHECK(plan.certificate.budget <= probe.total_bytes());
}

TEST_CASE("the planner finds the largest batch through refusals of cudaMalloc", "[memory]") {
    const demi::cuda_stream stream;
    const training_step step{
        demi::cuda_backend(stream, std::make_shared<demi::cuda_malloc_resource>())};
    REQUIRE(works(step.where));
    const ballast taken(200 * mebibyte);
    demi::cuda_memory_probe probe;
    const auto plan = demi::plan_batch(probe, without_margin(), [&](demi::trial& trial) {
        step.run(trial.batch_size());
        return trial.batch_size() * training_step::bytes_per_sample;
    });
    check_plan(plan, step, probe);
}

TEST_CASE("a margin keeps the plan away from refusals", "[memory]") {
    const demi::cuda_stream stream;
    const training_step step{demi::cuda_backend(stream)};
    REQUIRE(works(step.where));
    const ballast taken(200 * mebibyte);
    demi::cuda_memory_probe probe;
    demi::batch_plan_settings settings = without_margin();
    settings.margin = 64 * mebibyte;
    settings.maximum = 250;
    const std::size_t before = probe.free_bytes();
    const auto plan = demi::plan_batch(probe, settings,
                                       [&](demi::trial& trial) { step.run(trial.batch_size()); });
    CHECK(plan.peak + settings.margin.value() <= before + probe.pool_state().used);
    CHECK(plan.certificate.failure.has_value());
    CHECK(probe.free_bytes() == before);
}

TEST_CASE("a probe counts the pool's unused memory as free and its own as peak", "[memory]") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    REQUIRE(works(where));
    constexpr std::size_t size = 96 * mebibyte;
    demi::cuda_memory_probe probe;
    probe.recover();
    const std::size_t free = probe.free_bytes();
    const std::size_t own = probe.pool_state().used;
    CHECK(free <= probe.total_bytes());
    CHECK(own >= demi::cuda_context::workspace_size);
    CHECK(probe.suggested_margin() == std::min(probe.total_bytes() / 20, 1024 * mebibyte));

    cudaMemPool_t pool = nullptr;
    REQUIRE(cudaDeviceGetMemPool(&pool, where.context().device().index) == cudaSuccess);
    std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
    REQUIRE(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep) == cudaSuccess);
    probe.reset_peak();
    CHECK(probe.peak_bytes() == own);
    {
        const auto block = where.make_buffer<char>(size);
        CHECK(probe.pool_state().used == own + size);
        CHECK(probe.free_bytes() == free - size);
    }
    CHECK(probe.peak_bytes() == own + size);
    CHECK(probe.pool_state().used == own);
    CHECK(probe.pool_state().reserved >= own + size);
    CHECK(probe.free_bytes() == free);
    probe.reset_peak();
    CHECK(probe.peak_bytes() == own);
    probe.recover();
    CHECK(probe.pool_state().reserved < own + size);
    keep = 0;
    REQUIRE(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep) == cudaSuccess);
}

TEST_CASE("the largest block is found by trying and leaves no error", "[memory]") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    REQUIRE(works(where));
    const ballast taken(200 * mebibyte);
    demi::cuda_memory_probe probe;
    const std::size_t largest = probe.largest_block();
    CHECK(largest > 100 * mebibyte);
    CHECK(largest <= probe.free_bytes());
    CHECK(works(where));
    probe.recover();
    void* memory = nullptr;
    CHECK(cudaMalloc(&memory, largest) == cudaSuccess);
    CHECK(probe.largest_block() + largest <= probe.total_bytes());
    CHECK(cudaFree(memory) == cudaSuccess);
    CHECK(cudaMalloc(&memory, largest + 4 * mebibyte) == cudaErrorMemoryAllocation);
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
}

TEST_CASE("recovery forgets the error of a refused allocation", "[memory]") {
    demi::cuda_memory_probe probe;
    void* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, probe.total_bytes() * 2) == cudaErrorMemoryAllocation);
    REQUIRE(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
    probe.recover();
    CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("a device that shares its memory with the host has what the host has", "[memory]") {
    const auto root = std::filesystem::temp_directory_path() / "demi_cuda_memory_test";
    std::filesystem::create_directories(root / "proc");
    std::ofstream(root / "proc" / "meminfo") << "MemTotal:   102400 kB\n"
                                                "MemFree:     10240 kB\n"
                                                "MemAvailable: 81920 kB\n";
    demi::cuda_device device = demi::cuda_device::current();
    device.integrated = true;
    const demi::cuda_memory_probe probe(nullptr, device, demi::host_memory(root.string()));
    const auto pool = probe.pool_state();
    CHECK(probe.free_bytes() ==
          std::min(100 * mebibyte, 80 * mebibyte + pool.reserved - pool.used));
    CHECK(probe.total_bytes() == 100 * mebibyte);
    CHECK(probe.suggested_margin() == 5 * mebibyte);
    std::filesystem::remove_all(root);
}

TEST_CASE("a device without pools says how to measure peaks", "[memory]") {
    demi::cuda_device device = demi::cuda_device::current();
    device.has_memory_pools = false;
    demi::cuda_memory_probe probe(nullptr, device, demi::host_memory());
    CHECK(probe.free_bytes() <= probe.total_bytes());
    CHECK(probe.pool_state().reserved == 0);
    probe.recover();
    CHECK(mentions(message_of<demi::invalid_state>([&] { probe.reset_peak(); }),
                   {"reset_peak", "no memory pools", "metered_probe"}));
    CHECK(mentions(message_of<demi::invalid_state>([&] { static_cast<void>(probe.peak_bytes()); }),
                   {"peak_bytes", "no memory pools"}));
}

TEST_CASE("a refused buffer says how much was asked for and leaves the runtime clean", "[memory]") {
    const demi::cuda_stream stream;
    const std::size_t bytes = demi::cuda_memory_probe().total_bytes() + mebibyte;
    std::vector<std::shared_ptr<demi::cuda_memory_resource>> resources{
        std::make_shared<demi::cuda_pool_resource>(),
        std::make_shared<demi::cuda_malloc_resource>()};
    const char* const calls[] = {"cudaMallocAsync", "cudaMalloc"};
    for (std::size_t i = 0; i < resources.size(); ++i) {
        const demi::cuda_backend where(stream, resources[i]);
        std::size_t requested = 0;
        std::string text;
        try {
            static_cast<void>(where.make_buffer<char>(bytes));
        } catch (const demi::out_of_memory& refusal) {
            requested = refusal.requested_bytes();
            text = refusal.what();
            CHECK(demi::is_out_of_memory(refusal));
        }
        CHECK(requested == bytes);
        CAPTURE(text);
        CHECK(mentions(text, {calls[i], std::to_string(bytes), "out of memory"}));
        CHECK(works(where));
    }
}

TEST_CASE("a count whose bytes no integer holds is refused with its numbers", "[memory]") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    const std::size_t count = std::numeric_limits<std::size_t>::max() / sizeof(double) + 2;
    const auto text = message_of<demi::out_of_memory>(
        [&] { static_cast<void>(where.make_buffer<double>(count)); });
    CHECK(mentions(text, {std::to_string(count), "8 bytes", "expected at most"}));
    CHECK(works(where));
}

TEST_CASE("a buffer starts with zeros, moves, and may be empty", "[memory]") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    auto first = where.make_buffer<std::uint32_t>(1001);
    std::vector<std::uint32_t> values(1001, 7);
    where.download(first.data(), values.data(), values.size());
    CHECK(values == std::vector<std::uint32_t>(1001, 0));

    const std::uint32_t* const memory = first.data();
    auto second = std::move(first);
    CHECK(second.data() == memory);
    CHECK(second.size() == 1001);
    CHECK(first.data() == nullptr);  // NOLINT: what a moved-from buffer is
    CHECK(first.size() == 0);
    auto third = where.make_buffer<std::uint32_t>(3);
    third = std::move(second);
    CHECK(third.data() == memory);
    CHECK(third.size() == 1001);
    const auto empty = where.make_buffer<float>(0);
    CHECK(empty.data() == nullptr);
    CHECK(empty.size() == 0);
    where.upload(static_cast<const float*>(nullptr), static_cast<float*>(nullptr), 0);
}

TEST_CASE("memory comes from a pool of the engine's and goes back to it", "[memory]") {
    const demi::cuda_stream stream;
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = demi::cuda_device::current().index;
    cudaMemPool_t pool = nullptr;
    REQUIRE(cudaMemPoolCreate(&pool, &properties) == cudaSuccess);
    {
        const demi::cuda_backend where(stream, std::make_shared<demi::cuda_pool_resource>(pool));
        demi::cuda_memory_probe probe(pool);
        REQUIRE(works(where));
        probe.reset_peak();
        const std::size_t before = probe.pool_state().used;
        CHECK(before >= demi::cuda_context::workspace_size);
        {
            const auto block = where.make_buffer<float>(mebibyte);
            CHECK(probe.pool_state().used == before + 4 * mebibyte);
        }
        CHECK(probe.pool_state().used == before);
        CHECK(probe.peak_bytes() == before + 4 * mebibyte);
        const auto bytes = probe.total_bytes() + mebibyte;
        CHECK(mentions(message_of<demi::out_of_memory>(
                           [&] { static_cast<void>(where.make_buffer<char>(bytes)); }),
                       {"cudaMallocFromPoolAsync", std::to_string(bytes)}));
        CHECK(works(where));
    }
    CHECK(demi::cuda_memory_probe(pool).pool_state().used == 0);
    CHECK(cudaMemPoolDestroy(pool) == cudaSuccess);
}

TEST_CASE("streams are owned, moved and referred to", "[memory]") {
    demi::cuda_stream first;
    const cudaStream_t handle = first.get();
    REQUIRE(handle != nullptr);
    demi::cuda_stream second(std::move(first));
    CHECK(second.get() == handle);
    CHECK(first.get() == nullptr);  // NOLINT: what a moved-from stream is
    const demi::cuda_stream_ref reference = second;
    CHECK(reference.get() == handle);
    CHECK_FALSE(reference.is_capturing());
    second.synchronize();

    REQUIRE(cudaStreamBeginCapture(handle, cudaStreamCaptureModeRelaxed) == cudaSuccess);
    CHECK(reference.is_capturing());
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(handle, &graph) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    static_assert(!std::is_constructible_v<demi::cuda_stream_ref, std::nullptr_t>);
    static_assert(!std::is_constructible_v<demi::cuda_stream_ref, int>);
}

TEST_CASE("a device that is not there gives an error that names the call", "[memory]") {
    const auto device = demi::cuda_device::current();
    CHECK(device.compute_capability >= 75);
    CHECK(device.multiprocessors > 0);
    CHECK(device.shared_memory_per_block >= 48 * 1024);
    const auto text =
        message_of<demi::cuda_error>([] { static_cast<void>(demi::cuda_device::of(1 << 20)); });
    CAPTURE(text);
    CHECK(mentions(text, {"cudaDeviceGetAttribute", "cudaErrorInvalidDevice"}));
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    try {
        demi::detail::check_cuda(cudaErrorInvalidValue, "some_call");
    } catch (const demi::cuda_error& failure) {
        CHECK(failure.code() == cudaErrorInvalidValue);
        CHECK_FALSE(demi::is_out_of_memory(failure));
    }
}
