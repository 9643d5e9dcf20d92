// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The library for C++17: noctule.h with destructors, exceptions and chrono. Header only; link what noctule.h needs.
//
// All but a Dispatcher can be moved, and nothing copied. Constructors, functions that open and functions that publish or take throw
// noctule::Error with the sentence of noctule_last_error; no exception passes through C. Threads: as noctule.h says. Handles may be
// destroyed in any order.
#ifndef NOCTULE_HPP
#define NOCTULE_HPP

#include <noctule/noctule.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace noctule {

using std::chrono::nanoseconds;

// What went wrong: one sentence, with the way out.
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

// How old a sample was when it was taken, in the clock of the reader.
struct Age {
    nanoseconds value;
    std::optional<nanoseconds> bound;  // Proven: the true age is within this of value; 0 on one clock.
    std::optional<nanoseconds> sigma;  // Standard error if least delays are equal both ways; 0 on one clock.
};

// What is known of a sample. Times are on the clock of the reader's node.
struct SampleInfo {
    std::uint64_t sequence;                   // Counts the samples of one publisher as this host received them, from 1.
    std::uint64_t missed;                     // Missing before this one: lost on the way, or overwritten unread.
    std::optional<nanoseconds> source_time;   // When its content was true; none: its clock is not known yet.
    nanoseconds receive_time;                 // When it was taken.
    std::optional<Age> age;                   // None: the publisher's clock is not known yet.
    std::optional<std::string_view> format;   // Of the bytes; none: the publisher names none.
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
                info_.format ? std::optional<std::string_view>(info_.format) : std::nullopt};
    }

private:
    detail::Owner<noctule_sample_t, noctule_sample_release> sample_;
    noctule_sample_info_t info_;
};

enum class Reliability {
    best_effort = NOCTULE_BEST_EFFORT,
    deadline_bound = NOCTULE_DEADLINE_BOUND,
    reliable = NOCTULE_RELIABLE,
};

enum class Wait { block = NOCTULE_WAIT_BLOCK, spin = NOCTULE_WAIT_SPIN, hybrid = NOCTULE_WAIT_HYBRID };

// As noctule_qos_t, and with its defaults.
struct Qos {
    Reliability reliability = Reliability::best_effort;
    std::uint32_t keep_last = 0;  // Default: 8; a subscriber's: its publisher's.
    bool transient_local = false;
    std::optional<nanoseconds> deadline = std::nullopt;
    std::optional<nanoseconds> lifespan = std::nullopt;
    std::uint32_t tolerable_loss_ppm = 100;

    noctule_qos_t given() const noexcept {
        return {static_cast<int>(reliability), keep_last, transient_local, detail::count(deadline),
                detail::count(lifespan), tolerable_loss_ppm};
    }
};

// As noctule_publisher_options_t, and with its defaults.
struct PublisherOptions {
    std::string type_name = "bytes";
    std::uint64_t type_hash = 0;
    const char *description = nullptr; // Of the type, for tools that show samples as fields; docs/spec/type-description.md.
    std::optional<std::string> format = std::nullopt;
    Qos qos = {};
    std::uint32_t payload_bytes_max = 65536;
    std::uint32_t borrows = 7;
    bool multicast = false;
    bool keep_all = false;
};

// As noctule_subscriber_options_t, and with its defaults.
struct SubscriberOptions {
    std::optional<std::string> type_name = std::nullopt;
    std::uint64_t type_hash = 0;
    const char *description = nullptr; // Of the type, for tools that show samples as fields; docs/spec/type-description.md.
    std::optional<std::string> format = std::nullopt;
    Qos qos = {};
    Wait wait = Wait::block;
    std::uint32_t borrows = 1;
};

// As noctule_node_options_t, and with its defaults.
struct NodeOptions {
    std::uint32_t domain = 0;
    std::vector<std::string> static_peers = {};
    std::optional<std::string> swarm_key = std::nullopt;
};

// Publishes samples of one topic.
class Publisher {
public:
    explicit Publisher(noctule_publisher_t *publisher) noexcept : publisher_(publisher) {}

    // Publishes a copy of some bytes that are true now. Does not wait for the network or for readers; with keep_all it throws an
    // Error of status NOCTULE_ERROR_WOULD_BLOCK while a reader is behind.
    void publish(const void *bytes, std::size_t length_bytes) {
        detail::check(noctule_publish(publisher_.get(), bytes, length_bytes));
    }

    void publish(std::string_view text) { publish(text.data(), text.size()); }

    // The elements of a vector, an array or a span, as they lie in memory.
    template <typename Container, typename Element = typename Container::value_type>
    void publish(const Container &elements) {
        static_assert(std::is_trivially_copyable_v<Element>, "elements that hold pointers mean nothing elsewhere");
        publish(static_cast<const void *>(elements.data()), elements.size() * sizeof(Element));
    }

    // Bytes that were true at source_time of the node's clock, e.g. when the camera's shutter opened.
    void publish_at(const void *bytes, std::size_t length_bytes, nanoseconds source_time) {
        detail::check(noctule_publish_at(publisher_.get(), bytes, length_bytes, source_time.count()));
    }

    // As publish, with keep_all: false, and nothing is published, while a reader is behind.
    bool try_publish(const void *bytes, std::size_t length_bytes) {
        const int status = noctule_publish(publisher_.get(), bytes, length_bytes);
        return status != NOCTULE_ERROR_WOULD_BLOCK && detail::check(status) == NOCTULE_OK;
    }

    // Waits until a sample of length_bytes can be published with keep_all; false when the time is over.
    bool wait_for_room(std::size_t length_bytes, nanoseconds timeout) {
        return detail::check(noctule_wait_for_room(publisher_.get(), length_bytes, timeout.count())) == NOCTULE_OK;
    }

    // Waits until readers of other hosts have all and, if it is reliable, have acknowledged it; false when the time is over, or if
    // something was refused or given up since the last call.
    bool wait_for_acknowledgments(nanoseconds timeout) const {
        return detail::check(noctule_wait_for_acknowledgments(publisher_.get(), timeout.count())) == NOCTULE_OK;
    }

    // Subscribers that are matched now.
    int readers() const { return detail::check(noctule_publisher_readers(publisher_.get())); }

private:
    detail::Owner<noctule_publisher_t, noctule_publisher_close> publisher_;
};

// As noctule_statistics_t; none: not known.
struct Statistics {
    std::uint64_t taken, missed, expired, late, deadline_missed, bytes, aged;
    std::optional<nanoseconds> age_p50, age_p90, age_p99, age_p99_9, age_max, bound;
};

// Receives the samples of one topic from all its publishers.
class Subscriber {
public:
    explicit Subscriber(noctule_subscriber_t *subscriber) noexcept : subscriber_(subscriber) {}

    // The next sample if there is one.
    std::optional<Sample> take() { return receive(nanoseconds(0)); }

    // The newest sample if there is one; older ones are passed over and count as missed.
    std::optional<Sample> take_latest() {
        noctule_sample_t *sample = nullptr;
        noctule_sample_info_t info;
        const int status = detail::check(noctule_take_latest(subscriber_.get(), &sample, &info));
        if (status == NOCTULE_NOTHING) return std::nullopt;
        return std::optional<Sample>(std::in_place, sample, info);
    }

    // Waits for the next sample, up to timeout, or for ever; none when the time is over.
    std::optional<Sample> receive(std::optional<nanoseconds> timeout = std::nullopt) {
        noctule_sample_t *sample = nullptr;
        noctule_sample_info_t info;
        const std::int64_t timeout_ns = timeout ? std::max<std::int64_t>(timeout->count(), 0) : -1;
        const int status = detail::check(noctule_receive(subscriber_.get(), timeout_ns, &sample, &info));
        if (status == NOCTULE_NOTHING) return std::nullopt;
        return std::optional<Sample>(std::in_place, sample, info);
    }

    // Publishers that are matched now.
    int publishers() { return detail::check(noctule_subscriber_publishers(subscriber_.get())); }

    // What was seen of the topic so far.
    Statistics statistics() const {
        noctule_statistics_t from;
        detail::check(noctule_subscriber_statistics(subscriber_.get(), &from));
        const auto age = [](std::int64_t ns) { return detail::known(ns, INT64_MIN); };
        return {from.taken,           from.missed,            from.expired,         from.late,
                from.deadline_missed, from.bytes,             from.aged,            age(from.age_p50_ns), age(from.age_p90_ns),
                age(from.age_p99_ns), age(from.age_p99_9_ns), age(from.age_max_ns), detail::known(from.bound_ns, -1)};
    }

    // For functions of noctule.h; this stays its owner.
    noctule_subscriber_t *get() const noexcept { return subscriber_.get(); }

private:
    detail::Owner<noctule_subscriber_t, noctule_subscriber_close> subscriber_;
};

// Waits for many subscribers at once. Only wake may be called by several threads, and by signal handlers.
class WaitSet {
public:
    explicit WaitSet(Wait wait = Wait::block) {
        noctule_wait_set_t *set = nullptr;
        detail::check(noctule_wait_set_open(static_cast<int>(wait), &set));
        set_.reset(set);
    }

    // Waits until one of the subscribers has a sample, and gives its index; none when the time is over, or after wake. They are
    // looked at in turn. Taking may still give nothing: the sample was too old, or overwritten.
    std::optional<std::size_t> wait(const std::vector<noctule_subscriber_t *> &subscribers,
                                    std::optional<nanoseconds> timeout = std::nullopt) {
        std::size_t ready = 0;
        const std::int64_t timeout_ns = timeout ? std::max<std::int64_t>(timeout->count(), 0) : -1;
        const int status =
            detail::check(noctule_wait(set_.get(), subscribers.data(), subscribers.size(), timeout_ns, &ready));
        return status == NOCTULE_OK ? std::optional<std::size_t>(ready) : std::nullopt;
    }

    // Ends the wait of another thread, or the next one.
    void wake() const noexcept { noctule_wake(set_.get()); }

private:
    detail::Owner<noctule_wait_set_t, noctule_wait_set_close> set_;
};

// Calls what was registered for each sample that comes, on the thread that spins, one at a time. An exception of a callback
// leaves spin, and so does the Error of a sample that cannot be taken; spin may be called again.
class Dispatcher {
public:
    explicit Dispatcher(Wait wait = Wait::block) : set_(wait) {}

    // From now on call(Sample) is called for each sample of the subscriber. Not while another thread spins.
    void on_sample(Subscriber subscriber, std::function<void(Sample)> call) {
        handles_.push_back(subscriber.get());
        callbacks_.push_back({std::move(subscriber), std::move(call)});
    }

    // Calls until stop, or at once if nothing is registered.
    void spin() {
        while (!callbacks_.empty() && !stopped_) spin_once();
    }

    // Waits for a sample, up to timeout or for ever, and calls; false when the time is over, or after stop.
    bool spin_once(std::optional<nanoseconds> timeout = std::nullopt) {
        if (stopped_) return false;
        const auto ready = set_.wait(handles_, timeout);
        if (!ready || stopped_) return false;
        Callback &callback = callbacks_[*ready];
        if (auto sample = callback.subscriber.take()) callback.call(std::move(*sample));
        return true;
    }

    // For good: the callback that runs ends, and no other is called. May be called by any thread, and by signal handlers.
    void stop() noexcept {
        stopped_ = true;
        set_.wake();
    }

private:
    struct Callback {
        Subscriber subscriber;
        std::function<void(Sample)> call;
    };

    WaitSet set_;
    std::deque<Callback> callbacks_;  // Stays where it is when another is registered by a callback.
    std::vector<noctule_subscriber_t *> handles_;
    std::atomic<bool> stopped_{false};
};

// A participant of the swarm, with one thread of its own.
class Node {
public:
    // The name is for people; it need not be unique.
    explicit Node(const std::string &name, const NodeOptions &options = {}) {
        std::vector<const char *> peers;
        for (const std::string &peer : options.static_peers) peers.push_back(peer.c_str());
        noctule_node_options_t given = {};
        given.domain = options.domain;
        given.static_peers = peers.data();
        given.static_peers_count = peers.size();
        given.swarm_key = options.swarm_key ? options.swarm_key->c_str() : nullptr;
        noctule_node_t *node = nullptr;
        detail::check(noctule_node_open(name.c_str(), &given, &node));
        node_.reset(node);
    }

    // Opens a topic for writing.
    Publisher publisher(const std::string &topic, const PublisherOptions &options = {}) const {
        if (options.description) static_cast<void>(noctule_node_describe(node_.get(), options.description));
        noctule_publisher_options_t given = {};
        given.type_name = options.type_name.c_str();
        given.type_hash = options.type_hash;
        given.format = options.format ? options.format->c_str() : nullptr;
        given.qos = options.qos.given();
        given.payload_bytes_max = options.payload_bytes_max;
        given.borrows = options.borrows;
        given.multicast = options.multicast;
        given.keep_all = options.keep_all;
        noctule_publisher_t *publisher = nullptr;
        detail::check(noctule_publisher_open(node_.get(), topic.c_str(), &given, &publisher));
        return Publisher(publisher);
    }

    // Opens a topic for reading; publishers are found from now on.
    Subscriber subscriber(const std::string &topic, const SubscriberOptions &options = {}) const {
        if (options.description) static_cast<void>(noctule_node_describe(node_.get(), options.description));
        noctule_subscriber_options_t given = {};
        given.type_name = options.type_name ? options.type_name->c_str() : nullptr;
        given.type_hash = options.type_hash;
        given.format = options.format ? options.format->c_str() : nullptr;
        given.qos = options.qos.given();
        given.wait = static_cast<int>(options.wait);
        given.borrows = options.borrows;
        noctule_subscriber_t *subscriber = nullptr;
        detail::check(noctule_subscriber_open(node_.get(), topic.c_str(), &given, &subscriber));
        return Subscriber(subscriber);
    }

    // Now on the node's clock.
    nanoseconds now() const noexcept { return nanoseconds(noctule_now_ns(node_.get())); }

private:
    detail::Owner<noctule_node_t, noctule_node_close> node_;
};

}  // namespace noctule

#endif
