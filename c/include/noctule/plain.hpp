// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Endpoints of plain topics for generated types of C++17: a sample is the struct itself, written and read where it lies in shared
// memory. Header only.
#ifndef NOCTULE_PLAIN_HPP
#define NOCTULE_PLAIN_HPP

#include <noctule/typed.hpp>

#include <new>
#include <type_traits>

namespace noctule {

// Publishes values of one type as they lie in memory.
template <typename Plain>
class PlainPublisher {
    static_assert(std::is_trivially_copyable_v<Plain> && std::is_standard_layout_v<Plain>);

public:
    PlainPublisher(const Node &node, const std::string &topic, const Qos &qos = {}, std::uint32_t payload_bytes_max = 65536)
        : publisher_(node.publisher(topic, options(qos, payload_bytes_max))) {}

    // Publishes a copy of a value that is true now.
    void publish(const Plain &value) { publisher_.publish(&value, sizeof value); }

    // A value that was true at source_time of the node's clock.
    void publish_at(const Plain &value, nanoseconds source_time) { publisher_.publish_at(&value, sizeof value, source_time); }

    // Publishes the value that fill(Plain &) writes: in shared memory if all readers are on this host, so that nothing is copied. It
    // begins with the type's defaults, true now. What fill throws passes, and nothing is published.
    template <typename Fill>
    void publish_in_place(Fill fill) {
        Loan loan = publisher_.loan(sizeof(Plain));
        fill(*::new (loan.data()) Plain());
        loan.publish();
    }

    // For all else.
    Publisher &untyped() noexcept { return publisher_; }

private:
    static PublisherOptions options(const Qos &qos, std::uint32_t payload_bytes_max) {
        auto options = detail::options_of<typename Plain::noctule_message, PublisherOptions>(qos);
        options.format = "plain";
        options.payload_bytes_max = payload_bytes_max;
        return options;
    }

    Publisher publisher_;
};

// A value where it lies in shared memory, which is not used again while this lives; what a publisher wrote as CDR was decoded, and reads
// the same. Nothing keeps a publisher's process from writing to its memory: copy what must not change between two looks.
template <typename Plain>
class PlainSample {
public:
    PlainSample(Sample &&sample, const std::optional<Plain> &decoded) : sample_(std::move(sample)), decoded_(decoded) {}

    const Plain &operator*() const noexcept {
        return decoded_ ? *decoded_ : *std::launder(reinterpret_cast<const Plain *>(sample_.bytes().data()));
    }
    const Plain *operator->() const noexcept { return &**this; }

    // False if it was decoded.
    bool is_in_place() const noexcept { return !decoded_; }

    std::optional<Age> age() const { return sample_.age(); }
    SampleInfo info() const { return sample_.info(); }

private:
    Sample sample_;
    std::optional<Plain> decoded_;
};

// Receives values of one type, in place where they are plain. A publisher of another type, or of another definition of it, is reported on
// both sides.
template <typename Plain>
class PlainSubscriber {
    // The alignment that a sample has.
    static_assert(std::is_trivially_copyable_v<Plain> && alignof(Plain) <= 8);

public:
    PlainSubscriber(const Node &node, const std::string &topic, const Qos &qos = {})
        : subscriber_(node.subscriber(topic, options(qos))) {}

    // The next value if there is one.
    std::optional<PlainSample<Plain>> take() { return receive(nanoseconds(0)); }

    // Waits for the next value, up to timeout, or for ever; none when the time is over. Bytes that are no value of the type
    // are passed over and counted.
    std::optional<PlainSample<Plain>> receive(std::optional<nanoseconds> timeout = std::nullopt) {
        while (auto sample = subscriber_.receive(timeout)) {
            const auto format = sample->info().format;
            const Bytes bytes = sample->bytes();
            if (format == "plain" && bytes.size() == sizeof(Plain)) return PlainSample<Plain>(std::move(*sample), std::nullopt);
            if (format == "cdr")
                if (const auto value = cdr::decode<typename Plain::noctule_message>(bytes.data(), bytes.size()))
                    return PlainSample<Plain>(std::move(*sample), Plain::noctule_of(*value));
            undecodable_++;
        }
        return std::nullopt;
    }

    // Samples whose bytes were no value.
    std::uint64_t undecodable() const noexcept { return undecodable_; }

    // For all else, and for a WaitSet.
    Subscriber &untyped() noexcept { return subscriber_; }

private:
    static SubscriberOptions options(const Qos &qos) {
        return detail::options_of<typename Plain::noctule_message, SubscriberOptions>(qos);
    }

    Subscriber subscriber_;
    std::uint64_t undecodable_ = 0;
};

}  // namespace noctule

#endif
