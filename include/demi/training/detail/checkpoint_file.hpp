// SPDX-License-Identifier: MIT
/// The bytes of a checkpoint file.
///
/// Little-endian: magic, format version, record count; per record name, type, bytes per element,
/// bytes; last a 64-bit checksum of all before it. Strings are a 64-bit length and characters.
#pragma once

#include <demi/core/error.hpp>
#include <demi/precision/format_traits.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#if __has_include(<unistd.h>)
#include <fcntl.h>
#include <unistd.h>
#endif

namespace demi::inline DEMI_ABI::detail {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "checkpoint files are little-endian and read without conversion");

struct checkpoint_record {
    std::string type;
    std::uint64_t element_bytes = 1;
    std::vector<std::byte> bytes;
};

using checkpoint_records = std::map<std::string, checkpoint_record>;

inline constexpr std::string_view checkpoint_magic = "demi checkpoint\n";
inline constexpr std::uint64_t checkpoint_version = 1;

/// The name of a number type, or "value" with its size for any other.
template <class T>
std::string type_tag() {
    if constexpr (floating_format<T>) {
        return std::string(format_traits<T>::name);
    } else if constexpr (std::is_integral_v<T>) {
        return message(std::is_signed_v<T> ? "int" : "uint", 8 * sizeof(T));
    } else {
        return message("value", sizeof(T));
    }
}

/// FNV-1a over 64-bit words, then bytes: enough to find any damage that is not on purpose.
inline std::uint64_t checksum(const char* data, std::size_t size) {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto mix = [&hash](std::uint64_t value) {
        hash = (hash ^ value) * 0x100000001b3;
        hash ^= hash >> 32;
    };
    for (; size >= 8; data += 8, size -= 8) {
        std::uint64_t word;
        std::memcpy(&word, data, 8);
        mix(word);
    }
    for (; size > 0; ++data, --size) mix(static_cast<unsigned char>(*data));
    return hash;
}

class checkpoint_encoder {
public:
    void number(std::uint64_t value) { raw(&value, sizeof value); }
    void text(std::string_view value) {
        number(value.size());
        raw(value.data(), value.size());
    }
    void raw(const void* data, std::size_t size) {
        bytes_.append(static_cast<const char*>(data), size);
    }
    const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
};

/// Reads what the encoder wrote and refuses every length that the file does not hold.
class checkpoint_decoder {
public:
    checkpoint_decoder(std::string_view bytes, const std::string& path)
        : rest_(bytes), path_(path) {}

    std::uint64_t number() {
        std::uint64_t value;
        std::memcpy(&value, take(sizeof value).data(), sizeof value);
        return value;
    }
    std::string_view text() { return take(number()); }
    std::string_view take(std::uint64_t size) {
        if (size > rest_.size()) {
            raise(bad_checkpoint(message("checkpoint: ", path_, " is truncated: ", rest_.size(),
                                         " bytes left, expected ", size)));
        }
        const auto taken = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return taken;
    }
    std::size_t left() const { return rest_.size(); }

private:
    std::string_view rest_;
    const std::string& path_;
};

/// Has the bytes of a file on the disk before it takes the place of the former one: else a machine
/// that loses its power could keep the new name without them.
inline bool reach_disk([[maybe_unused]] const std::string& path) {
#if __has_include(<unistd.h>)
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    // Some file systems cannot be asked.
    const bool reached = ::fsync(file) == 0 || errno == EINVAL;
    ::close(file);
    return reached;
#else
    return true;
#endif
}

inline void write_checkpoint_file(const std::string& path, const checkpoint_records& records) {
    checkpoint_encoder encoder;
    encoder.raw(checkpoint_magic.data(), checkpoint_magic.size());
    encoder.number(checkpoint_version);
    encoder.number(records.size());
    for (const auto& [name, record] : records) {
        encoder.text(name);
        encoder.text(record.type);
        encoder.number(record.element_bytes);
        encoder.number(record.bytes.size());
        encoder.raw(record.bytes.data(), record.bytes.size());
    }
    encoder.number(checksum(encoder.bytes().data(), encoder.bytes().size()));

    const std::string unfinished = path + ".unfinished";
    std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
    file.write(encoder.bytes().data(), static_cast<std::streamsize>(encoder.bytes().size()));
    file.close();
    if (!file || !reach_disk(unfinished) || std::rename(unfinished.c_str(), path.c_str()) != 0) {
        const int reason = errno;
        std::remove(unfinished.c_str());
        raise(error(message("checkpoint: cannot write ", path, ": ", std::strerror(reason))));
    }
}

/// The bytes of a file, by `istream::read`, which turns a failure of the buffer into a flag.
inline std::string read_bytes(const std::string& path) {
    std::string bytes;
    std::ifstream file(path, std::ios::binary);
    if (file.is_open()) {
        std::vector<char> block(std::size_t{1} << 16);
        const auto size = static_cast<std::streamsize>(block.size());
        while (file.read(block.data(), size), file.gcount() > 0) {
            bytes.append(block.data(), static_cast<std::size_t>(file.gcount()));
        }
    }
    if (!file.is_open() || file.bad()) {
        raise(
            bad_checkpoint(message("checkpoint: cannot read ", path, ": ", std::strerror(errno))));
    }
    return bytes;
}

inline checkpoint_records read_checkpoint_file(const std::string& path) {
    const std::string bytes = read_bytes(path);
    if (!std::string_view(bytes).starts_with(checkpoint_magic)) {
        raise(bad_checkpoint(message("checkpoint: ", path, " is not a demi checkpoint")));
    }
    checkpoint_decoder decoder(bytes, path);
    decoder.take(checkpoint_magic.size());
    if (const auto version = decoder.number(); version != checkpoint_version) {
        raise(bad_checkpoint(message("checkpoint: ", path, " has format version ", version,
                                     ", expected ", checkpoint_version)));
    }
    checkpoint_records records;
    for (auto count = decoder.number(); count > 0; --count) {
        const std::string name(decoder.text());
        checkpoint_record record;
        record.type = decoder.text();
        record.element_bytes = decoder.number();
        const auto payload = decoder.text();
        if (record.element_bytes == 0 || payload.size() % record.element_bytes != 0) {
            raise(bad_checkpoint(message("checkpoint: ", path, ": record '", name, "' has ",
                                         payload.size(), " bytes for elements of ",
                                         record.element_bytes)));
        }
        const auto* first = reinterpret_cast<const std::byte*>(payload.data());
        record.bytes.assign(first, first + payload.size());
        records[name] = std::move(record);
    }
    const std::size_t covered = bytes.size() - decoder.left();
    const std::uint64_t found = decoder.number();
    if (decoder.left() != 0 || found != checksum(bytes.data(), covered)) {
        raise(bad_checkpoint(message("checkpoint: ", path, " is damaged: its checksum is ", found,
                                     ", expected ", checksum(bytes.data(), covered))));
    }
    return records;
}

}  // namespace demi::inline DEMI_ABI::detail
