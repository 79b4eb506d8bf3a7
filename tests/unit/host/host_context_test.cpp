// SPDX-License-Identifier: MIT
#include <demi/host/host_backend.hpp>
#include <demi/host/host_context.hpp>

#include <memory_resource>
#include <support/catch.hpp>

TEST_CASE("A backend's context is what it was made with, and is shared by its copies") {
    std::pmr::monotonic_buffer_resource memory;
    const demi::host_backend where{
        {.threads = 1, .memory = &memory, .isa = demi::host_isa::portable}};
    const demi::host_backend copy = where;
    const demi::host_context context = where.context();
    CHECK(context.isa == demi::host_isa::portable);
    CHECK(context.memory == &memory);
    CHECK(context.executor->concurrency == 1);
    CHECK(copy.context().executor == context.executor);
}
