// SPDX-License-Identifier: MIT
/// One block of memory, cut to the shapes of a list.
#include <demi/precision/bfloat16.hpp>
#include <demi/training/tensor_storage.hpp>

#include <cstddef>
#include <cstdint>
#include <support/backends.hpp>
#include <support/catch.hpp>
#include <utility>
#include <vector>

TEMPLATE_TEST_CASE("storage has the shapes of a list, is zero, and its tensors do not overlap", "",
                   DEMI_TEST_BACKENDS) {
    const TestType where;
    std::vector<std::vector<double>> shapes;
    for (const unsigned count : {3u, 0u, 16u, 17u, 1u, 1000u}) shapes.emplace_back(count, 5.0);
    const demi::tensor_list<double> list(shapes);
    const demi::detail::tensor_storage<demi::bfloat16, TestType> storage(where, list);

    const auto& tensors = storage.tensors();
    REQUIRE(tensors.size() == shapes.size());
    CHECK(tensors.element_count() == list.element_count());
    std::size_t wrong_size = 0, not_zero = 0, overlapping = 0;
    const demi::bfloat16* end = nullptr;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        wrong_size += tensors[t].size() != shapes[t].size();
        for (const demi::bfloat16 value : tensors[t]) not_zero += value.bits() != 0;
        overlapping += end != nullptr && tensors[t].data() < end;
        end = tensors[t].data() + tensors[t].size();
    }
    CHECK(wrong_size == 0);
    CHECK(not_zero == 0);
    CHECK(overlapping == 0);
}

TEMPLATE_TEST_CASE("every tensor begins a whole number of cache lines after the first", "",
                   DEMI_TEST_BACKENDS) {
    std::vector<std::vector<float>> shapes{std::vector<float>(1), std::vector<float>(17),
                                           std::vector<float>(5)};
    const demi::detail::tensor_storage<float, TestType> storage(TestType{},
                                                                demi::tensor_list<float>(shapes));
    const auto& tensors = storage.tensors();
    CHECK((tensors[1].data() - tensors[0].data()) * 4 == 64);
    CHECK((tensors[2].data() - tensors[1].data()) * 4 == 128);
}

TEST_CASE("storage that is moved keeps its tensors in place") {
    std::vector<float> shape(40);
    demi::detail::tensor_storage<float, reference_backend> storage(reference_backend{},
                                                                   demi::tensor_list<float>(shape));
    float* const data = storage.tensors()[0].data();
    data[39] = 7;
    const auto moved = std::move(storage);
    CHECK(moved.tensors()[0].data() == data);
    CHECK(moved.tensors()[0][39] == 7);
}

TEST_CASE("storage of nothing has no tensors") {
    const demi::detail::tensor_storage<float, reference_backend> none;
    CHECK(none.tensors().empty());
    const demi::detail::tensor_storage<float, reference_backend> empty(reference_backend{},
                                                                       demi::tensor_list<float>());
    CHECK(empty.tensors().empty());
}
