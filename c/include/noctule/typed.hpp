// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Typed endpoints for generated types of C++17: values in and out, each with its age. Header only.
#ifndef NOCTULE_TYPED_HPP
#define NOCTULE_TYPED_HPP

#include <noctule/cdr.hpp>
#include <noctule/noctule.hpp>

namespace noctule {
namespace detail {

// Description of a generated type, if it has one.
template <typename Type>
constexpr const char *description_of(decltype(&Type::noctule_description[0])) {
    return Type::noctule_description;
}
template <typename Type>
constexpr const char *description_of(...) {
    return nullptr;
}

// Options of a publisher or subscriber of a type, without its format.
template <typename Type, typename Options>
Options options_of(const Qos &qos) {
    Options options;
    options.type_name = Type::noctule_type_name;
    options.type_hash = Type::noctule_type_hash;
    options.description = description_of<Type>(nullptr);
    options.qos = qos;
    return options;
}

}  // namespace detail

// Publishes values of one type as CDR.
template <typename Type>
class TypedPublisher {
public:
    TypedPublisher(const Node &node, const std::string &topic, const Qos &qos = {}, std::uint32_t payload_bytes_max = 65536)
        : publisher_(node.publisher(topic, options(qos, payload_bytes_max))) {}

    // Publishes a value that is true now. False if it breaks a bound of its type, or a text holds a NUL.
    bool publish(const Type &value) {
        const auto sample = cdr::encode(value);
        if (sample) publisher_.publish(sample->data(), sample->size());
        return sample.has_value();
    }

    // A value that was true at source_time of the node's clock.
    bool publish_at(const Type &value, nanoseconds source_time) {
        const auto sample = cdr::encode(value);
        if (sample) publisher_.publish_at(sample->data(), sample->size(), source_time);
        return sample.has_value();
    }

    // For all else.
    Publisher &untyped() noexcept { return publisher_; }

private:
    static PublisherOptions options(const Qos &qos, std::uint32_t payload_bytes_max) {
        auto options = detail::options_of<Type, PublisherOptions>(qos);
        options.format = "cdr";
        options.payload_bytes_max = payload_bytes_max;
        return options;
    }

    Publisher publisher_;
};

// A value, and what is known of it.
template <typename Type>
struct TypedSample {
    Type value;
    std::optional<Age> age;  // When it was taken. None: the publisher's clock is not known yet.
};

// Receives values of one type. A publisher of another type, or of another definition of it, is reported on both sides.
template <typename Type>
class TypedSubscriber {
public:
    TypedSubscriber(const Node &node, const std::string &topic, const Qos &qos = {})
        : subscriber_(node.subscriber(topic, options(qos))) {}

    // The next value if there is one.
    std::optional<TypedSample<Type>> take() { return receive(nanoseconds(0)); }

    // Waits for the next value, up to timeout, or for ever; none when the time is over. Bytes that are no value of the type
    // are passed over and counted.
    std::optional<TypedSample<Type>> receive(std::optional<nanoseconds> timeout = std::nullopt) {
        while (const auto sample = subscriber_.receive(timeout)) {
            if (auto value = cdr::decode<Type>(sample->bytes().data(), sample->bytes().size()))
                return TypedSample<Type>{std::move(*value), sample->age()};
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
        auto options = detail::options_of<Type, SubscriberOptions>(qos);
        options.format = "cdr";
        return options;
    }

    Subscriber subscriber_;
    std::uint64_t undecodable_ = 0;
};

}  // namespace noctule

#endif
