// SPDX-License-Identifier: MIT
#include "device_training.hpp"
#include "training.hpp"
#include <demi/cuda/cuda_backend.cuh>

#include <cstddef>
#include <memory>
#include <memory_resource>

/// One tile is enough for a network as small as this, and compiles in a fraction of the time.
template <class Format>
struct demi::gemm_tile<80, Format> {
    using tiles = tile_choice<mma_tile<64, 64, 32, 32, 32, 4>>;
    using narrow_tiles = tiles;
};

namespace digits_demo {

namespace {

/// A stream of a GPU, and memory in its order that a meter counts.
class device_place {
public:
    std::pmr::memory_resource* upstream() { return &upstream_; }
    demi::cuda_backend backend(demi::memory_meter& meter) {
        return demi::cuda_backend(stream_, std::make_shared<metered_memory>(meter));
    }

private:
    /// The device's pool in the form that a `memory_meter` takes.
    class pool_of_stream final : public std::pmr::memory_resource {
    public:
        explicit pool_of_stream(demi::cuda_stream_ref stream) : stream_(stream) {}

    private:
        void* do_allocate(std::size_t bytes, std::size_t) override {
            return pool_.allocate(bytes, stream_);
        }
        void do_deallocate(void* memory, std::size_t bytes, std::size_t) override {
            pool_.deallocate(memory, bytes, stream_);
        }
        bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
            return this == &other;
        }

        demi::cuda_stream_ref stream_;
        demi::cuda_pool_resource pool_;
    };

    /// A meter in the form that a `cuda_backend` takes.
    class metered_memory final : public demi::cuda_memory_resource {
    public:
        explicit metered_memory(demi::memory_meter& meter) : meter_(meter) {}

        void* allocate(std::size_t bytes, demi::cuda_stream_ref) override {
            return meter_.allocate(bytes);
        }
        void deallocate(void* memory, std::size_t bytes, demi::cuda_stream_ref) noexcept override {
            meter_.deallocate(memory, bytes);
        }

    private:
        demi::memory_meter& meter_;
    };

    demi::cuda_stream stream_;
    pool_of_stream upstream_{stream_};
};

}  // namespace

policy_result compare_on_device(const std::string& name, const nn::digits_split& digits,
                                const options& chosen, progress_bar& progress) {
    device_place device;
    return compare(name, device, digits, chosen, progress);
}

}  // namespace digits_demo
