// SPDX-License-Identifier: MIT
/// The memory of an optimizer: master weights, compute copy, slots, and their checkpoint.
#include <demi/precision/convert.hpp>
#include <demi/training/optimizer_state.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <support/backends.hpp>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <vector>

namespace {

using floats = std::vector<float>;
using halves = std::vector<demi::float16>;

template <class Policy, class Backend, std::size_t Slots = 2>
using state = demi::optimizer_state<Policy, Slots, Backend>;

template <class T>
std::vector<T> values_of(std::span<T> tensor) {
    return {tensor.begin(), tensor.end()};
}

}  // namespace

TEMPLATE_TEST_CASE("parameters in the compute format get master weights with their values", "",
                   DEMI_TEST_BACKENDS) {
    std::vector<halves> parameters{
        halves(5, demi::float16(1.5f)), {}, halves(40, demi::float16(-2.0f))};
    const state<demi::mixed_float16, TestType> made(TestType{},
                                                    demi::tensor_list<demi::float16>(parameters));
    REQUIRE(made.weights().size() == 3);
    CHECK(values_of(made.weights()[0]) == floats(5, 1.5f));
    CHECK(values_of(made.weights()[2]) == floats(40, -2.0f));
    CHECK(parameters[0] == halves(5, demi::float16(1.5f)));
    CHECK(made.steps() == 0);
    CHECK(values_of(made.slot(1)[2]) == floats(40, 0.0f));
}

TEMPLATE_TEST_CASE("parameters in the param format are the master weights", "",
                   DEMI_TEST_BACKENDS) {
    std::vector<floats> parameters{floats(5, 1.5f)};
    state<demi::mixed_float16, TestType> made(TestType{}, demi::tensor_list<float>(parameters));
    CHECK(made.weights()[0].data() == parameters[0].data());
    made.write_compute_copy();
    CHECK(parameters[0] == floats(5, 1.5f));
}

TEMPLATE_TEST_CASE("an engine's own copy is written from its master weights", "",
                   DEMI_TEST_BACKENDS) {
    std::vector<floats> masters{floats(5, 1.0f + 0x1p-20f), floats(2, 3.0f)};
    std::vector<halves> computes{halves(5), halves(2)};
    state<demi::mixed_float16, TestType> made(TestType{}, demi::tensor_list<float>(masters),
                                              demi::tensor_list<demi::float16>(computes));
    CHECK(computes[0] == halves(5, demi::float16(1.0f)));
    CHECK(computes[1] == halves(2, demi::float16(3.0f)));
    masters[1][0] = 9.0f;
    made.write_compute_copy();
    CHECK(static_cast<float>(computes[1][0]) == 9.0f);
}

TEST_CASE("no parameters, and copies of another shape, are refused") {
    const reference_backend where;
    const demi::tensor_list<float> none;
    CHECK(mentions(message_of<demi::invalid_argument>(
                       [&] { state<demi::full_float32, reference_backend> made(where, none); }),
                   {"optimizer", "0 parameter tensors", "expected at least 1"}));

    std::vector<floats> masters{floats(5, 1.0f)};
    std::vector<halves> computes{halves(4, demi::float16(2.0f))};
    CHECK(mentions(message_of<demi::invalid_argument>([&] {
                       state<demi::mixed_float16, reference_backend> made(
                           where, demi::tensor_list<float>(masters),
                           demi::tensor_list<demi::float16>(computes));
                   }),
                   {"compute copy tensor 0", "4 elements", "expected 5"}));
    CHECK(computes[0] == halves(4, demi::float16(2.0f)));
}

TEST_CASE("a tensor that is listed twice, or overlaps another one, is refused") {
    const reference_backend where;
    floats memory(10);
    const auto refused = [&](std::size_t second, std::size_t count) {
        std::span<float> a(memory.data(), 5), b(memory.data() + second, count);
        return message_of<demi::invalid_argument>(
            [&] { state<demi::full_float32, reference_backend> made(where, demi::tensors(a, b)); });
    };
    CHECK(mentions(refused(0, 5), {"optimizer", "parameter tensors 0 and 1", "overlap"}));
    CHECK(mentions(refused(4, 3), {"parameter tensors 0 and 1"}));
    CHECK(refused(5, 5).empty());
    CHECK(refused(2, 0).empty());
}

TEST_CASE("a slot that the rule does not have is refused by number") {
    floats parameters(3);
    const state<demi::full_float32, reference_backend> made(reference_backend{},
                                                            demi::tensor_list<float>(parameters));
    CHECK(made.slot(1).size() == 1);
    CHECK(mentions(message_of<demi::invalid_argument>([&] { made.slot(2); }),
                   {"slot 2", "expected below 2"}));
}

TEMPLATE_TEST_CASE("a checkpoint brings back steps, weights, slots and the compute copy", "",
                   DEMI_TEST_BACKENDS) {
    std::vector<halves> first{halves(5, demi::float16(1.5f)), halves(40)};
    state<demi::mixed_float16, TestType> saved(TestType{}, demi::tensor_list<demi::float16>(first));
    saved.weights()[0][3] = 1.0f + 0x1p-20f;
    saved.slot(0)[1][39] = 4.0f;
    saved.slot(1)[0][0] = 5.0f;
    saved.record()->steps = 77;
    demi::checkpoint file;
    saved.save(file, "optimizer");

    std::vector<halves> second{halves(5), halves(40)};
    state<demi::mixed_float16, TestType> loaded(TestType{},
                                                demi::tensor_list<demi::float16>(second));
    loaded.load(file, "optimizer");
    CHECK(loaded.steps() == 77);
    CHECK(loaded.weights()[0][3] == 1.0f + 0x1p-20f);
    CHECK(loaded.weights()[0][0] == 1.5f);
    CHECK(loaded.slot(0)[1][39] == 4.0f);
    CHECK(loaded.slot(1)[0][0] == 5.0f);
    CHECK(second[0] == halves{demi::float16(1.5f), demi::float16(1.5f), demi::float16(1.5f),
                              demi::float16(1.0f), demi::float16(1.5f)});
}

TEST_CASE("a checkpoint that does not fit is refused with nothing changed") {
    const reference_backend where;
    std::vector<floats> parameters{floats(3, 1.0f), floats(2, 2.0f)};
    state<demi::full_float32, reference_backend> saved(where, demi::tensor_list<float>(parameters));
    saved.record()->steps = 5;
    demi::checkpoint good;
    saved.save(good, "a");

    const auto refused = [&](auto& target, const demi::checkpoint& from, const char* name) {
        return message_of<demi::bad_checkpoint>([&] { target.load(from, name); });
    };
    CHECK(mentions(refused(saved, good, "b"), {"no record", "b."}));

    std::vector<floats> more{floats(3, 7.0f), floats(2, 7.0f), floats(1, 7.0f)};
    state<demi::full_float32, reference_backend> three(where, demi::tensor_list<float>(more));
    CHECK(mentions(refused(three, good, "a"), {"2 tensors", "expected 3"}));

    std::vector<floats> other_size{floats(3, 7.0f), floats(4, 7.0f)};
    state<demi::full_float32, reference_backend> wider(where, demi::tensor_list<float>(other_size));
    CHECK(mentions(refused(wider, good, "a"), {"a.weights.1", "2 x float32", "expected 4"}));

    std::vector<std::vector<demi::bfloat16>> brains{std::vector<demi::bfloat16>(3),
                                                    std::vector<demi::bfloat16>(2)};
    state<demi::pure_bfloat16, reference_backend> pure(where,
                                                       demi::tensor_list<demi::bfloat16>(brains));
    CHECK(mentions(refused(pure, good, "a"), {"a.weights.0", "float32", "expected", "bfloat16"}));

    std::vector<floats> same{floats(3, 7.0f), floats(2, 7.0f)};
    state<demi::full_float32, reference_backend, 3> more_slots(where,
                                                               demi::tensor_list<float>(same));
    CHECK(mentions(refused(more_slots, good, "a"), {"no record", "slot2"}));
    CHECK(same == std::vector<floats>{floats(3, 7.0f), floats(2, 7.0f)});
    CHECK(other_size == std::vector<floats>{floats(3, 7.0f), floats(4, 7.0f)});
    CHECK(more_slots.steps() == 0);
}
