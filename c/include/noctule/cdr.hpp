// SPDX-License-Identifier: MIT OR Apache-2.0
//
// CDR, XCDR version 1 (docs/spec/formats.md), for generated types of C++17: values to bytes and back. Header only.
//
// Not trusted: every byte that is read. No number among them is used as a size before it is compared with what is there.
#ifndef NOCTULE_CDR_HPP
#define NOCTULE_CDR_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace noctule::cdr {

constexpr std::size_t unbounded = SIZE_MAX;

// True for std::string, which takes longer to compile than all of this: only headers of types with texts include it.
template <typename Type, typename = void>
struct is_text : std::false_type {};
template <typename Type>
struct is_text<Type, std::void_t<typename Type::traits_type>> : std::true_type {};

// Writes values one after the other, little-endian, each aligned to its size. What a bound forbids sets failed().
class Writer {
public:
    explicit Writer(std::vector<std::uint8_t> &out) : out_(out), start_(out.size()) {}

    bool failed() const noexcept { return failed_; }
    void fail() noexcept { failed_ = true; }

    template <typename Number>
    void number(Number value) {
        static_assert(std::is_arithmetic_v<Number>);
        out_.resize(start_ + (out_.size() - start_ + sizeof value - 1) / sizeof value * sizeof value);
        std::uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof value);
        if constexpr (std::is_same_v<Number, float>) {
            std::uint32_t half = 0;
            std::memcpy(&half, &value, sizeof half);
            bits = half;
        } else if constexpr (std::is_integral_v<Number>) {
            bits = static_cast<std::uint64_t>(value);
        }
        for (std::size_t byte = 0; byte < sizeof value; byte++) out_.push_back(static_cast<std::uint8_t>(bits >> 8 * byte));
    }

    void count(std::size_t count, std::size_t bound) {
        if (count > bound || count > UINT32_MAX) fail();
        number(static_cast<std::uint32_t>(count));
    }

    template <typename Text>
    void text(const Text &text, std::size_t bound) {
        if (text.size() > bound || text.find('\0') != Text::npos) return fail();
        count(text.size() + 1, unbounded);
        out_.insert(out_.end(), text.begin(), text.end());
        out_.push_back(0);
    }

private:
    std::vector<std::uint8_t> &out_;
    std::size_t start_;
    bool failed_ = false;
};

// Reads them, of either byte order. After a value that is not there whole failed() is set and every value is zero.
class Reader {
public:
    // The bytes of a sample, which begin with the header of their representation.
    Reader(const std::uint8_t *sample, std::size_t length) {
        if (length < 4 || sample[0] != 0 || sample[1] > 1) {
            failed_ = true;
            return;
        }
        big_endian_ = sample[1] == 0;
        bytes_ = sample + 4;
        length_ = length - 4;
    }

    bool failed() const noexcept { return failed_; }
    // True if all was read and nothing follows but what a transport pads.
    bool done() const noexcept { return !failed_ && length_ - at_ <= 3; }

    template <typename Number>
    void number(Number &value) {
        std::uint64_t bits = 0;
        if (const std::uint8_t *at = part(sizeof value, sizeof value))
            for (std::size_t byte = 0; byte < sizeof value; byte++)
                bits = bits << 8 | at[big_endian_ ? byte : sizeof value - 1 - byte];
        if constexpr (std::is_same_v<Number, bool>) {
            if (bits > 1) failed_ = true;
            value = bits == 1;
        } else if constexpr (std::is_same_v<Number, float>) {
            const auto half = static_cast<std::uint32_t>(bits);
            std::memcpy(&value, &half, sizeof value);
        } else if constexpr (std::is_same_v<Number, double>) {
            std::memcpy(&value, &bits, sizeof value);
        } else {
            value = static_cast<Number>(bits);
        }
    }

    // The count of a sequence, each element of which takes a byte at least; 0 if it is refused.
    std::size_t count(std::size_t bound) {
        std::uint32_t count = 0;
        number(count);
        if (count > bound || count > length_ - at_) failed_ = true;
        return failed_ ? 0 : count;
    }

    template <typename Text>
    void text(Text &text, std::size_t bound) {
        std::uint32_t with_nul = 0;
        number(with_nul);
        text.clear();
        const std::uint8_t *at = part(with_nul, 1);
        // Some writers send an empty text without its NUL.
        if (at == nullptr || with_nul == 0) return;
        if (at[with_nul - 1] != 0 || with_nul - 1 > bound || std::memchr(at, 0, with_nul - 1) != nullptr) {
            failed_ = true;
            return;
        }
        text.assign(reinterpret_cast<const char *>(at), with_nul - 1);
    }

private:
    const std::uint8_t *part(std::size_t size, std::size_t alignment) {
        const std::size_t pad = (alignment - at_ % alignment) % alignment;
        if (failed_ || pad > length_ - at_ || size > length_ - at_ - pad) {
            failed_ = true;
            return nullptr;
        }
        at_ += pad + size;
        return bytes_ + at_ - size;
    }

    const std::uint8_t *bytes_ = nullptr;
    std::size_t length_ = 0;
    std::size_t at_ = 0;
    bool big_endian_ = false;
    bool failed_ = false;
};

// Numbers and texts; generated types have functions of their own with these names.
template <typename Number, std::enable_if_t<std::is_arithmetic_v<Number>, int> = 0>
void write(Writer &cdr, Number value, std::size_t = unbounded) {
    cdr.number(value);
}
template <typename Text, std::enable_if_t<is_text<Text>::value, int> = 0>
void write(Writer &cdr, const Text &text, std::size_t bound = unbounded) {
    cdr.text(text, bound);
}

template <typename Number, std::enable_if_t<std::is_arithmetic_v<Number>, int> = 0>
void read(Reader &cdr, Number &value, std::size_t = unbounded) {
    cdr.number(value);
}
template <typename Text, std::enable_if_t<is_text<Text>::value, int> = 0>
void read(Reader &cdr, Text &text, std::size_t bound = unbounded) {
    cdr.text(text, bound);
}

// A struct, of which only its own functions know more.
template <typename Struct, std::enable_if_t<std::is_class_v<Struct> && !is_text<Struct>::value, int> = 0>
void write(Writer &cdr, const Struct &value, std::size_t = unbounded) {
    value.noctule_write(cdr);
}
template <typename Struct, std::enable_if_t<std::is_class_v<Struct> && !is_text<Struct>::value, int> = 0>
void read(Reader &cdr, Struct &value, std::size_t = unbounded) {
    value.noctule_read(cdr);
}

template <typename Element, std::size_t length>
void write_array(Writer &cdr, const std::array<Element, length> &array, std::size_t text_bound) {
    for (const Element &element : array) write(cdr, element, text_bound);
}
template <typename Element, std::size_t length>
void read_array(Reader &cdr, std::array<Element, length> &array, std::size_t text_bound) {
    for (Element &element : array) read(cdr, element, text_bound);
}

template <typename Element>
void write_sequence(Writer &cdr, const std::vector<Element> &sequence, std::size_t bound, std::size_t text_bound) {
    cdr.count(sequence.size(), bound);
    for (std::size_t at = 0; at < sequence.size() && !cdr.failed(); at++)
        write(cdr, static_cast<const Element &>(sequence[at]), text_bound);
}
template <typename Element>
void read_sequence(Reader &cdr, std::vector<Element> &sequence, std::size_t bound, std::size_t text_bound) {
    const std::size_t count = cdr.count(bound);
    sequence.clear();
    for (std::size_t at = 0; at < count && !cdr.failed(); at++) {
        Element element{};
        read(cdr, element, text_bound);
        sequence.push_back(std::move(element));
    }
}

// The bytes of a sample; nothing if a bound or a NUL in a text forbids it.
template <typename Struct>
std::optional<std::vector<std::uint8_t>> encode(const Struct &value) {
    std::vector<std::uint8_t> body, out{0, 1, 0, 0};
    Writer cdr(body);
    value.noctule_write(cdr);
    if (cdr.failed()) return std::nullopt;
    out.insert(out.end(), body.begin(), body.end());
    return out;
}

// The value of a sample; nothing if the bytes are none.
template <typename Struct>
std::optional<Struct> decode(const std::uint8_t *sample, std::size_t length) {
    Reader cdr(sample, length);
    Struct value{};
    value.noctule_read(cdr);
    if (!cdr.done()) return std::nullopt;
    return value;
}

}  // namespace noctule::cdr

#endif
