// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Samples with their age, and errors: the library's results in C++17. Included by noctule.hpp.
#ifndef NOCTULE_SAMPLE_HPP
#define NOCTULE_SAMPLE_HPP

#include <noctule/noctule.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace noctule {

using std::chrono::nanoseconds;

// A failure: one sentence, with the way out.
class Error : public std::runtime_error {
public:
    explicit Error(int status) : std::runtime_error(noctule_last_error()), status_(status) {}

    // One of noctule_status_t.
    int status() const noexcept { return status_; }

private:
    int status_;
};

namespace detail {

// Passes on what is no failure.
inline int check(int status) {
    if (status < 0) throw Error(status);
    return status;
}

inline int64_t count(std::optional<nanoseconds> duration) { return duration ? duration->count() : 0; }

inline std::optional<nanoseconds> known(int64_t ns, int64_t unknown) {
    return ns == unknown ? std::nullopt : std::optional<nanoseconds>(ns);
}

// Calls a C function when a pointer goes.
template <auto close>
struct Close {
    template <typename Handle>
    void operator()(Handle *handle) const noexcept {
        close(handle);
    }
};

template <typename Handle, auto close>
using Owner = std::unique_ptr<Handle, Close<close>>;

}  // namespace detail

// Bytes that are somewhere else, to be read.
class Bytes {
public:
    Bytes(const void *data, std::size_t size) noexcept : data_(static_cast<const std::uint8_t *>(data)), size_(size) {}

    const std::uint8_t *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    const std::uint8_t *begin() const noexcept { return data_; }
    const std::uint8_t *end() const noexcept { return data_ + size_; }
    std::uint8_t operator[](std::size_t at) const { return data_[at]; }

    // The same as text.
    std::string_view text() const noexcept { return {reinterpret_cast<const char *>(data_), size_}; }

private:
    const std::uint8_t *data_;
    std::size_t size_;
};

// A node's number.
using NodeId = std::array<std::uint8_t, 16>;

namespace detail {

inline NodeId id(const noctule_node_id_t &from) {
    NodeId id;
    std::copy(std::begin(from.bytes), std::end(from.bytes), id.begin());
    return id;
}

inline noctule_node_id_t id(const NodeId &from) {
    noctule_node_id_t id;
    std::copy(from.begin(), from.end(), std::begin(id.bytes));
    return id;
}

}  // namespace detail

// How a sample came: by UDP also where shared memory was refused.
enum class Route { shared_memory = NOCTULE_ROUTE_SHARED_MEMORY, udp = NOCTULE_ROUTE_UDP };

// How old a sample was when it was taken, in the clock of the reader.
struct Age {
    nanoseconds value;
    std::optional<nanoseconds> bound;  // Proven: the true age is within this of value; 0 on one clock.
    std::optional<nanoseconds> sigma;  // Standard error if least delays are equal both ways; 0 on one clock.
};

// Metadata of a sample. Times are on the clock of the reader's node.
struct SampleInfo {
    std::uint64_t sequence;                   // Counts the samples of one publisher, missed ones too.
    std::uint64_t missed;                     // Missing before this one: lost on the way, or overwritten unread.
    std::optional<nanoseconds> source_time;   // When its content was true; none: its clock is not known yet.
    nanoseconds receive_time;                 // When it was taken.
    std::optional<Age> age;                   // None: the publisher's clock is not known yet.
    std::optional<std::string_view> format;   // Of the bytes; none: the publisher names none.
    NodeId publisher;                         // The node that published it.
    Route route;
};

// A sample where it lies in shared memory, which is not used again while this lives.
class Sample {
public:
    Sample(noctule_sample_t *sample, const noctule_sample_info_t &info) noexcept : sample_(sample), info_(info) {}

    // Aligned to 8 bytes, to 64 if there are more than 32.
    Bytes bytes() const noexcept { return {info_.bytes, info_.length_bytes}; }

    std::optional<Age> age() const {
        if (info_.age_ns == INT64_MIN) return std::nullopt;
        return Age{nanoseconds(info_.age_ns), detail::known(info_.bound_ns, -1), detail::known(info_.sigma_ns, -1)};
    }

    SampleInfo info() const {
        return {info_.sequence, info_.missed, detail::known(info_.source_time_ns, INT64_MIN),
                nanoseconds(info_.receive_time_ns), age(),
                info_.format ? std::optional<std::string_view>(info_.format) : std::nullopt,
                detail::id(info_.publisher), static_cast<Route>(info_.route)};
    }

private:
    detail::Owner<noctule_sample_t, noctule_sample_release> sample_;
    noctule_sample_info_t info_;
};

}  // namespace noctule

#endif
