// SPDX-License-Identifier: MIT
#include <demi/batching/out_of_memory.hpp>

#include <exception>
#include <new>
#include <stdexcept>
#include <support/catch.hpp>
#include <system_error>

namespace {

struct engine_error {
    int code;
};

template <class Exception>
bool stored_is_out_of_memory(const Exception& exception) {
    return demi::is_out_of_memory(std::make_exception_ptr(exception));
}

}  // namespace

TEST_CASE("Exceptions that mean memory by type are recognised whatever their text says") {
    CHECK(demi::is_out_of_memory(demi::out_of_memory("no luck", 5)));
    CHECK(demi::is_out_of_memory(std::bad_alloc()));
    CHECK(demi::is_out_of_memory(std::bad_array_new_length()));
    CHECK(demi::is_out_of_memory(
        std::system_error(std::make_error_code(std::errc::not_enough_memory))));
    CHECK(stored_is_out_of_memory(demi::out_of_memory("no luck", 5)));
}

TEST_CASE("A text that says out of memory is recognised in every library's words (P5, P56)") {
    const char* const texts[] = {
        "CUDA out of memory. Tried to allocate 2.00 GiB",
        "XYZ backend out of memory (allocated 3 of 4 GiB)",
        "CUDA error: OUT OF MEMORY",
        "CUBLAS_STATUS_ALLOC_FAILED",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "cudaErrorMemoryAllocation",
        "VK_ERROR_OUT_OF_DEVICE_MEMORY",
        "RESOURCE_EXHAUSTED: while allocating",
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes",
        "mmap: Cannot allocate memory",
        "std::bad_alloc",
    };
    for (const char* text : texts) {
        INFO(text);
        CHECK(demi::is_out_of_memory(std::runtime_error(text)));
    }
}

TEST_CASE("Other failures are not out of memory") {
    const char* const texts[] = {
        "CUDNN_STATUS_NOT_SUPPORTED",
        "CUDA error: invalid configuration argument",
        "CUDA error: an illegal memory access was encountered",
        "CUBLAS_STATUS_NOT_INITIALIZED",
        "shared memory segment is missing",
        "memory format is not contiguous",
        "",
    };
    for (const char* text : texts) {
        INFO(text);
        CHECK_FALSE(demi::is_out_of_memory(std::runtime_error(text)));
    }
    CHECK_FALSE(demi::is_out_of_memory(std::logic_error("batch argument is not mapped")));
    CHECK_FALSE(demi::is_out_of_memory(
        std::system_error(std::make_error_code(std::errc::permission_denied))));
    CHECK_FALSE(stored_is_out_of_memory(engine_error{2}));
    CHECK_FALSE(demi::is_out_of_memory(std::exception_ptr()));
}

TEST_CASE("An out of memory nested in another exception is recognised") {
    std::exception_ptr failure;
    try {
        try {
            throw std::bad_alloc();
        } catch (...) {
            std::throw_with_nested(std::runtime_error("layer 3 failed"));
        }
    } catch (...) {
        failure = std::current_exception();
    }
    CHECK(demi::is_out_of_memory(failure));
}

TEST_CASE("is_thrown recognises an engine's own exception type") {
    CHECK(demi::is_thrown<engine_error>(std::make_exception_ptr(engine_error{2})));
    CHECK_FALSE(demi::is_thrown<engine_error>(std::make_exception_ptr(std::bad_alloc())));
    CHECK_FALSE(demi::is_thrown<engine_error>(std::exception_ptr()));
}
