// SPDX-License-Identifier: MIT
#include <demi/host/gemm.hpp>

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <support/catch.hpp>
#include <support/matrices.hpp>

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>

namespace {

using namespace demi;

/// A matrix of ones between two pages that nobody may touch, flush with one of them.
template <class T>
class guarded_matrix {
public:
    guarded_matrix(std::size_t rows, std::size_t columns, layout order, std::size_t padding,
                   bool at_end) {
        const std::size_t leading = (order == layout::row_major ? columns : rows) + padding;
        const std::size_t lines = order == layout::row_major ? rows : columns;
        const std::size_t extent = lines * leading - padding;
        const std::size_t bytes = (extent * sizeof(T) + page - 1) / page * page;
        size_ = bytes + 2 * page;
        memory_ = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory_ != MAP_FAILED);
        char* const first = static_cast<char*>(memory_) + page;
        REQUIRE(mprotect(first, bytes, PROT_READ | PROT_WRITE) == 0);
        char* const start = at_end ? first + bytes - extent * sizeof(T) : first;
        view_ = {reinterpret_cast<T*>(start), rows, columns, leading, order};
        for (std::size_t i = 0; i < extent; ++i) view_.data()[i] = T(1.0f);
    }
    guarded_matrix(const guarded_matrix&) = delete;
    guarded_matrix& operator=(const guarded_matrix&) = delete;
    ~guarded_matrix() { munmap(memory_, size_); }

    matrix_view<T> view() const { return view_; }

private:
    static constexpr std::size_t page = 4096;

    void* memory_;
    std::size_t size_;
    matrix_view<T> view_;
};

template <class A, class B, class C>
void check_accesses() {
    for (const host_isa isa : available_isas()) {
        const host_context context{isa, nullptr, std::pmr::new_delete_resource()};
        matrix_rng rng(3);
        std::size_t wrong = 0;
        for (int i = 0; i < 300; ++i) {
            const std::size_t rows = random_size(rng, 1, 40);
            const std::size_t columns = random_size(rng, 1, 70);
            const std::size_t depth = random_size(rng, 1, 40);
            const auto padding = [&] { return random_size(rng, 0, 2); };
            const auto at_end = [&] { return rng() % 2 == 0; };
            const guarded_matrix<A> a(rows, depth, random_layout(rng), padding(), at_end());
            const guarded_matrix<B> b(depth, columns, random_layout(rng), padding(), at_end());
            const guarded_matrix<C> c(rows, columns, random_layout(rng), padding(), at_end());
            detail::host_gemm(context, 1.0f, matrix_view<const A>(a.view()),
                              matrix_view<const B>(b.view()), i % 2 == 0 ? 0.0f : 1.0f, c.view(),
                              no_epilogue{});
            const float expected = static_cast<float>(depth + (i % 2 == 0 ? 0 : 1));
            for (std::size_t r = 0; r < rows; ++r) {
                for (std::size_t n = 0; n < columns; ++n) {
                    if (static_cast<float>(c.view()(r, n)) != expected) ++wrong;
                }
            }
        }
        CAPTURE(std::string(name(isa)));
        CHECK(wrong == 0);
    }
}

}  // namespace

TEST_CASE("a product of floats touches nothing outside its matrices") {
    check_accesses<float, float, float>();
}

TEST_CASE("a product of 16-bit and 8-bit numbers touches nothing outside its matrices") {
    check_accesses<float16, float8_e4m3, bfloat16>();
}

TEST_CASE("a product of bfloat16 pairs touches nothing outside its matrices") {
    check_accesses<bfloat16, bfloat16, float>();
}

#endif
