// SPDX-License-Identifier: MIT
/// How foreign tensors are seen: as a pointer and a count of one element type.
#pragma once

#include <demi/core/error.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace demi::inline DEMI_ABI {

namespace detail {

template <class T>
concept has_member_view = requires(T& tensor) {
    std::span(tensor.demi_view());
};

template <class T>
concept has_adl_view = requires(T& tensor) {
    std::span(demi_view(tensor));
};

template <class T>
concept has_data_and_size = requires(T& tensor) {
    requires std::is_pointer_v<decltype(tensor.data())>;
    { tensor.size() } -> std::convertible_to<std::size_t>;
};

template <class T>
concept has_view = has_member_view<T> || has_adl_view<T> || has_data_and_size<T>;

/// Follows pointers, smart pointers and reference wrappers to the tensor behind them.
template <class T>
decltype(auto) unwrap(T& handle) {
    if constexpr (has_view<T>) {
        return (handle);
    } else if constexpr (requires { *handle; }) {
        return (*handle);
    } else if constexpr (requires { handle.get(); }) {
        return (handle.get());
    } else {
        return (handle);
    }
}

}  // namespace detail

/// How demi reads one tensor of type `T`; specialise it for a type that you cannot change.
///
/// The primary template takes, in this order, a member `demi_view()`, a function
/// `demi_view(tensor)` found by argument-dependent lookup, or members `data()` and `size()`. Each
/// gives something that `std::span` can be made from, over contiguous elements of one arithmetic or
/// 16- or 8-bit type.
template <class T>
struct tensor_traits {
    static auto view(T& tensor) requires detail::has_view<T> {
        if constexpr (detail::has_member_view<T>) {
            return std::span(tensor.demi_view());
        } else if constexpr (detail::has_adl_view<T>) {
            return std::span(demi_view(tensor));
        } else {
            return std::span(tensor.data(), static_cast<std::size_t>(tensor.size()));
        }
    }
};

namespace detail {

template <class T>
using element_of_view = typename decltype(tensor_traits<T>::view(std::declval<T&>()))::element_type;

/// Core knows no formats: a number is an arithmetic type or a small value, as every format is.
template <class T>
concept number = std::is_arithmetic_v<T> ||(std::is_trivially_copyable_v<T> && sizeof(T) <= 2);

template <class T>
concept viewable = requires(T& tensor) {
    tensor_traits<T>::view(tensor);
};

template <class T>
concept element_is_tensor_like =
    viewable<std::remove_reference_t<decltype(unwrap(std::declval<T&>()))>>;

template <class Range>
using range_element = std::remove_reference_t<decltype(*std::begin(std::declval<Range&>()))>;

}  // namespace detail

/// One tensor: contiguous elements of one number type.
template <class T>
concept tensor = detail::viewable<T> && detail::number<detail::element_of_view<T>>;

/// A range of tensors, or of pointers or references to tensors.
template <class T>
concept tensor_range =
    !tensor<std::remove_reference_t<T>> && detail::element_is_tensor_like<detail::range_element<T>>;

/// What a `tensor_list` can be made from.
template <class T>
concept tensor_source = tensor<std::remove_reference_t<T>> || tensor_range<T>;

/// The span of one tensor. Throws `invalid_argument` for a null pointer with a count above zero.
template <tensor T>
auto view(T& tensor) {
    const auto elements = tensor_traits<T>::view(tensor);
    using element = typename decltype(tensor_traits<T>::view(tensor))::element_type;
    if (elements.data() == nullptr && !elements.empty()) {
        detail::raise(invalid_argument(
            detail::message("tensor: null pointer to ", elements.size(), " elements")));
    }
    return std::span<element>(elements);
}

template <class T>
class tensor_list;

namespace detail {

template <class Source>
struct source_element {};

template <class Source>
    requires tensor<std::remove_reference_t<Source>>
struct source_element<Source> {
    using type = element_of_view<std::remove_reference_t<Source>>;
};

template <tensor_range Source>
struct source_element<Source> {
    using type = element_of_view<
        std::remove_reference_t<decltype(unwrap(std::declval<range_element<Source>&>()))>>;
};

template <class T>
struct source_element<tensor_list<T>> {
    using type = T;
};

}  // namespace detail

/// The element type, `const` included, of the list made from a source.
template <class Source>
using element_of = typename detail::source_element<
    std::conditional_t<tensor_range<Source>, Source, std::remove_reference_t<Source>>>::type;

namespace detail {

/// Whether elements of type `From` may be seen as `To`: the same type, or with a `const` added.
template <class From, class To>
concept seen_as = std::is_convertible_v<From (*)[], To (*)[]>;

}  // namespace detail

/// Tensors of one element type, in the order given; their memory belongs to the caller.
///
/// Everything that works on many tensors takes a list, so that the work is done in one pass.
template <class T>
class tensor_list {
public:
    using element_type = T;
    using value_type = std::remove_const_t<T>;

    tensor_list() = default;

    /// Lists one tensor, or every tensor of a range. Throws `invalid_argument` for a null pointer
    /// to a non-empty tensor.
    template <class Source>
        requires(tensor_source<Source> && !std::same_as<std::remove_cvref_t<Source>, tensor_list> &&
                 detail::seen_as<element_of<Source>, T>)
    tensor_list(Source&& source) {
        if constexpr (tensor<std::remove_reference_t<Source>>) {
            add(source);
        } else {
            for (auto&& handle : source) add(detail::unwrap(handle));
        }
    }

    /// Appends one tensor.
    template <tensor U>
        requires(detail::seen_as<detail::element_of_view<U>, T>)
    void add(U& tensor) {
        const std::span<T> elements = demi::view(tensor);
        tensors_.push_back(elements);
        element_count_ += elements.size();
    }

    std::size_t size() const noexcept { return tensors_.size(); }
    bool empty() const noexcept { return tensors_.empty(); }

    /// Elements in all tensors together.
    std::size_t element_count() const noexcept { return element_count_; }

    std::span<T> operator[](std::size_t index) const { return tensors_[index]; }
    auto begin() const noexcept { return tensors_.begin(); }
    auto end() const noexcept { return tensors_.end(); }
    std::span<const std::span<T>> spans() const noexcept { return tensors_; }

private:
    std::vector<std::span<T>> tensors_;
    std::size_t element_count_ = 0;
};

template <class Source>
tensor_list(Source&&) -> tensor_list<typename detail::source_element<Source>::type>;

/// Lists tensors given one by one: `tensors(weights, bias)`.
template <tensor First, tensor... Rest>
auto tensors(First&& first, Rest&&... rest) {
    tensor_list<detail::element_of_view<std::remove_reference_t<First>>> list;
    list.add(first);
    (list.add(rest), ...);
    return list;
}

namespace detail {

/// Throws unless two lists have the same tensors, size by size.
template <class T, class U>
void require_same_shape(std::string_view who, std::string_view what,
                        std::span<const std::span<T>> a, std::string_view expected,
                        std::span<const std::span<U>> b) {
    if (a.size() != b.size()) {
        raise(invalid_argument(message(who, ": ", a.size(), " ", what, " tensors, expected ",
                                       b.size(), " as in ", expected)));
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i].size() != b[i].size()) {
            raise(invalid_argument(message(who, ": ", what, " tensor ", i, " has ", a[i].size(),
                                           " elements, expected ", b[i].size(), " as in ",
                                           expected)));
        }
    }
}

}  // namespace detail

}  // namespace demi::inline DEMI_ABI
