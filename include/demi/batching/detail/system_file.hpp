// SPDX-License-Identifier: MIT
/// Small text files of the kernel: numbers, and lines of a key and a number.
#pragma once

#include <demi/core/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace demi::inline DEMI_ABI {

namespace detail {

inline std::vector<std::string_view> split_words(std::string_view text, char separator) {
    std::vector<std::string_view> words;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(separator), text.size());
        if (end > 0) words.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return words;
}

/// The text of one file, read when it is constructed.
class system_file {
public:
    system_file(const std::string& root, std::string path) : root_(root), path_(std::move(path)) {
        std::ifstream file(root_ + path_, std::ios::binary);
        if (!file) return;
        text_ = std::string(std::istreambuf_iterator<char>(file), {});
        exists_ = !file.bad();
    }

    bool exists() const { return exists_; }
    const std::string& path() const { return path_; }
    std::vector<std::string_view> lines() const { return split_words(text_, '\n'); }

    /// The only word of the file.
    std::string_view word() const {
        const auto all = lines();
        return all.empty() ? std::string_view() : all.front();
    }

    /// The number that the file consists of.
    std::size_t number() const { return parse(word()); }

    /// The number after `key` at the start of a line.
    std::optional<std::size_t> find(std::string_view key) const {
        for (const std::string_view line : lines()) {
            const auto words = split_words(line, ' ');
            if (words.empty() || words[0] != key) continue;
            return parse(words.size() > 1 ? words[1] : std::string_view());
        }
        return std::nullopt;
    }

    std::size_t required(std::string_view key) const {
        const auto value = find(key);
        if (!value) {
            raise(error(message("host_memory: ", root_, path_,
                                exists_ ? " has no " : " is missing: ", key,
                                ", expected a number of bytes")));
        }
        return *value;
    }

private:
    std::size_t parse(std::string_view word) const {
        std::size_t value = 0;
        const char* const end = word.data() + word.size();
        const auto result = std::from_chars(word.data(), end, value);
        if (word.empty() || result.ec != std::errc() || result.ptr != end) {
            raise(error(message("host_memory: ", root_, path_, " holds '", word,
                                "', expected a number of bytes")));
        }
        return value;
    }

    std::string root_;
    std::string path_;
    std::string text_;
    bool exists_ = false;
};

}  // namespace detail

}  // namespace demi::inline DEMI_ABI
