// SPDX-License-Identifier: MIT
/// Named values that survive the process: one validated file for everything a run must remember.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/precision/format_traits.hpp>
#include <demi/training/detail/checkpoint_file.hpp>

#include <cstddef>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace demi::inline DEMI_ABI {

/// A set of named records, in memory until it is written.
///
/// `store` and `load` take trivially copyable values, objects with `save` and `load` such as
/// `optimizer`, and objects with `state` and `restore` such as `loss_scaler`. Loading checks
/// everything before it changes anything, and throws `bad_checkpoint`, or what `restore` throws for
/// a state that it cannot continue from.
class checkpoint {
public:
    bool contains(const std::string& name) const { return records_.count(name) != 0; }
    std::size_t size() const noexcept { return records_.size(); }

    /// Keeps a copy of a value or the state of an object under a name, in place of what was there.
    template <class T>
    void store(const std::string& name, const T& object) {
        if constexpr (requires { object.save(*this, name); }) {
            object.save(*this, name);
        } else if constexpr (requires { object.state(); }) {
            store(name, object.state());
        } else {
            static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                          "store a trivially copyable value, or an object with save or state");
            store_elements(name, std::span<const T>(&object, 1));
        }
    }

    template <class T>
    void store_elements(const std::string& name, std::span<const T> elements) {
        const auto bytes = std::as_bytes(elements);
        records_[name] = {detail::type_tag<T>(), sizeof(T), {bytes.begin(), bytes.end()}};
    }

    /// Returns a value. Throws `bad_checkpoint` when there is none of this name and type.
    template <class T>
        requires std::is_trivially_copyable_v<T> T load(const std::string& name)
    const {
        T value;
        load_elements(name, std::span<T>(&value, 1));
        return value;
    }

    /// Sets an object to a stored state.
    template <class T>
    void load(const std::string& name, T& object) const {
        if constexpr (requires { object.load(*this, name); }) {
            object.load(*this, name);
        } else if constexpr (requires { object.restore(object.state()); }) {
            object.restore(load<std::remove_cvref_t<decltype(object.state())>>(name));
        } else {
            object = load<T>(name);
        }
    }

    template <class T>
    void load_elements(const std::string& name, std::span<T> elements) const {
        const auto& record = checked<T>(name, elements.size());
        if (!elements.empty()) {
            std::memcpy(elements.data(), record.bytes.data(), record.bytes.size());
        }
    }

    /// Throws `bad_checkpoint` unless there are exactly `count` elements of type `T`.
    template <class T>
    void require(const std::string& name, std::size_t count) const {
        checked<T>(name, count);
    }

    /// Writes a file; it appears under its name only when complete, so that a crash or a full disk
    /// leaves the former one. Throws `demi::error` when it cannot be written.
    void write(const std::string& path) const { detail::write_checkpoint_file(path, records_); }

    /// Reads a file. Throws `bad_checkpoint` for a file that cannot be opened, is not a checkpoint,
    /// is of another format version, is truncated, or has any wrong bit.
    static checkpoint read(const std::string& path) {
        checkpoint result;
        result.records_ = detail::read_checkpoint_file(path);
        return result;
    }

private:
    template <class T>
    const detail::checkpoint_record& checked(const std::string& name, std::size_t count) const {
        const auto found = records_.find(name);
        if (found == records_.end()) {
            detail::raise(bad_checkpoint(detail::message("checkpoint: no record '", name, "'")));
        }
        const auto& record = found->second;
        const std::size_t stored = record.bytes.size() / record.element_bytes;
        const std::string expected = detail::type_tag<T>();
        if (record.type != expected || record.element_bytes != sizeof(T) || stored != count) {
            detail::raise(bad_checkpoint(detail::message("checkpoint: record '", name, "' holds ",
                                                         stored, " x ", record.type, ", expected ",
                                                         count, " x ", expected)));
        }
        return record;
    }

    detail::checkpoint_records records_;
};

namespace detail {

inline std::string tensor_name(const std::string& name, std::size_t index) {
    return name + '.' + std::to_string(index);
}

template <class T, class Backend>
void store_tensors(checkpoint& into, const std::string& name, const Backend& where,
                   const tensor_list<T>& tensors) {
    into.store(name + ".count", static_cast<std::uint64_t>(tensors.size()));
    std::vector<T> elements;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        elements.resize(tensors[i].size());
        where.download(tensors[i].data(), elements.data(), elements.size());
        into.store_elements(tensor_name(name, i), std::span<const T>(elements));
    }
}

template <class T>
void check_tensors(const checkpoint& from, const std::string& name, const tensor_list<T>& tensors) {
    const auto count = from.load<std::uint64_t>(name + ".count");
    if (count != tensors.size()) {
        raise(bad_checkpoint(message("checkpoint: '", name, "' holds ", count,
                                     " tensors, expected ", tensors.size())));
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        from.require<T>(tensor_name(name, i), tensors[i].size());
    }
}

template <class T, class Backend>
void load_tensors(const checkpoint& from, const std::string& name, Backend& where,
                  const tensor_list<T>& tensors) {
    std::vector<T> elements;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        elements.resize(tensors[i].size());
        from.load_elements(tensor_name(name, i), std::span<T>(elements));
        where.upload(elements.data(), tensors[i].data(), elements.size());
    }
}

}  // namespace detail

}  // namespace demi::inline DEMI_ABI
