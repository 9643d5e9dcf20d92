// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The library for C++17: noctule.h with destructors, exceptions and chrono. Header only; link what noctule.h needs.
//
// All but a Dispatcher can be moved, and nothing copied. Constructors, functions that open and functions that publish or take throw
// noctule::Error with the sentence of noctule_last_error; no exception passes through C. Threads: as in noctule.h. Handles may be
// destroyed in any order.
#ifndef NOCTULE_HPP
#define NOCTULE_HPP

#include <noctule/noctule.h>
#include <noctule/action.hpp>
#include <noctule/parameter.hpp>
#include <noctule/request.hpp>
#include <noctule/sample.hpp>

#include <algorithm>
#include <array>
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
    nanoseconds linger = std::chrono::seconds(1);  // How long the destructor of a reliable one waits for acknowledgements.
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
    bool keep_all = false;
    bool ignore_local = false;
};

// As noctule_node_options_t, and with its defaults.
struct NodeOptions {
    std::uint32_t domain = 0;
    std::vector<std::string> static_peers = {};
    std::optional<std::string> swarm_key = std::nullopt;
    std::optional<std::string> interface_address = std::nullopt;
    std::optional<std::uint32_t> share_with_group = std::nullopt;
    bool shared_memory = true;
    std::size_t unacknowledged_bytes_max = 0;  // Default: 256 MiB.
    // Gets what would go to standard error: a word for the kind, and a sentence. On the node's thread: it must not wait, throws nothing, and
    // destroys nothing of this library.
    std::function<void(std::string_view kind, std::string_view sentence)> on_notice = nullptr;
};

// Another node.
struct KnownNode {
    NodeId id;
    std::string name;
    std::string address;
    bool same_host;
};

// An endpoint of another node.
struct KnownEndpoint {
    NodeId node;
    std::string node_name;
    std::string topic;
    std::string type_name;
    std::uint64_t type_hash;
    bool same_host;
    bool is_publisher;
    bool transient_local;
    Reliability reliability;
    std::uint32_t keep_last;
    std::uint32_t payload_bytes_max;
};

// Clocks of this machine that others stamp in.
enum class StampClock {
    monotonic = NOCTULE_CLOCK_MONOTONIC,
    realtime = NOCTULE_CLOCK_REALTIME,
    tai = NOCTULE_CLOCK_TAI,
};

// When a sample was true, on the node's clock, and how far that is known.
struct SourceTime {
    nanoseconds time;
    std::optional<nanoseconds> bound = std::nullopt;
    std::optional<nanoseconds> sigma = std::nullopt;
};

using NodeCounters = noctule_node_counters_t;
using LinkCounters = noctule_link_counters_t;
using Exchange = noctule_exchange_t;
using PublisherCounters = noctule_publisher_counters_t;

// A place for the next sample of a publisher, in shared memory if all readers are on this host. It is published once, or dropped when this goes.
// Its publisher stays where it is meanwhile and publishes nothing else.
class Loan {
public:
    Loan(noctule_publisher_t *publisher, void *place, std::size_t size) noexcept
        : publisher_(publisher), place_(place), size_(size) {}
    Loan(Loan &&other) noexcept
        : publisher_(std::exchange(other.publisher_, nullptr)), place_(other.place_), size_(other.size_) {}
    Loan &operator=(Loan &&) = delete;
    ~Loan() {
        if (publisher_) noctule_drop_loan(publisher_);
    }

    std::uint8_t *data() const noexcept { return static_cast<std::uint8_t *>(place_); }
    std::size_t size() const noexcept { return size_; }

    // Publishes it, true at source_time of the node's clock, or now.
    void publish(std::optional<nanoseconds> source_time = std::nullopt) { publish_part(size_, source_time); }

    // The same of its first bytes.
    void publish_part(std::size_t length_bytes, std::optional<nanoseconds> source_time = std::nullopt) {
        const std::int64_t time_ns = source_time ? source_time->count() : INT64_MIN;
        detail::check(noctule_publish_loan(publisher_, length_bytes, time_ns));
        publisher_ = nullptr;
    }

private:
    noctule_publisher_t *publisher_;
    void *place_;
    std::size_t size_;
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

    // Bytes whose time is not exactly known, such as from Node::source_time_of.
    void publish_uncertain(const void *bytes, std::size_t length_bytes, const SourceTime &source) {
        const noctule_source_time_t given = {source.time.count(), source.bound ? source.bound->count() : -1,
                                             source.sigma ? source.sigma->count() : -1};
        detail::check(noctule_publish_uncertain(publisher_.get(), bytes, length_bytes, &given));
    }

    // A place for the next sample, to be written and then published. One at a time.
    Loan loan(std::size_t length_bytes) {
        void *place = nullptr;
        detail::check(noctule_loan(publisher_.get(), length_bytes, &place));
        return Loan(publisher_.get(), place, length_bytes);
    }

    PublisherCounters counters() const {
        PublisherCounters counters;
        detail::check(noctule_publisher_counters(publisher_.get(), &counters));
        return counters;
    }

    // As publish, with keep_all: false, and nothing is published, while a reader is behind; counters() has it in would_block, and in held_up how often for 5 s.
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

    // Statistics since it was opened.
    Statistics statistics() const {
        noctule_statistics_t from;
        detail::check(noctule_subscriber_statistics(subscriber_.get(), &from));
        const auto age = [](std::int64_t ns) { return detail::known(ns, INT64_MIN); };
        return {from.taken,           from.missed,            from.expired,         from.late,
                from.deadline_missed, from.bytes,             from.aged,            age(from.age_p50_ns), age(from.age_p90_ns),
                age(from.age_p99_ns), age(from.age_p99_9_ns), age(from.age_max_ns), detail::known(from.bound_ns, -1)};
    }

    // For poll and epoll: readable while there may be a sample. When it is, take until there is none.
    int descriptor() { return detail::check(noctule_subscriber_descriptor(subscriber_.get())); }

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
        given.interface_address = options.interface_address ? options.interface_address->c_str() : nullptr;
        given.shares_with_group = options.share_with_group.has_value();
        given.group = options.share_with_group.value_or(0);
        given.without_shared_memory = !options.shared_memory;
        given.unacknowledged_bytes_max = options.unacknowledged_bytes_max;
        std::unique_ptr<Hook> hook;
        if (options.on_notice) {
            hook = std::make_unique<Hook>(options.on_notice);
            given.on_notice = [](void *context, const char *kind, const char *sentence) {
                (*static_cast<Hook *>(context))(kind, sentence);
            };
            given.on_notice_context = hook.release();
            given.on_notice_done = [](void *context) { delete static_cast<Hook *>(context); };
        }
        noctule_node_t *node = nullptr;
        detail::check(noctule_node_open(name.c_str(), &given, &node));
        node_.reset(node);
    }

    // Describes a type to nodes that request it, for their tools; generated code does it. False if the text is no description, or there is no
    // room for more types.
    bool describe(const char *description) const noexcept { return noctule_node_describe(node_.get(), description) == NOCTULE_OK; }

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
        given.linger_ns = options.linger.count() > 0 ? options.linger.count() : -1;
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
        given.keep_all = options.keep_all;
        given.ignore_local = options.ignore_local;
        noctule_subscriber_t *subscriber = nullptr;
        detail::check(noctule_subscriber_open(node_.get(), topic.c_str(), &given, &subscriber));
        return Subscriber(subscriber);
    }

    // Opens a client of a service.
    Client client(const std::string &service, const ServiceOptions &options = {}) const {
        describe(options);
        const noctule_service_options_t given = options.given();
        noctule_client_t *client = nullptr;
        detail::check(noctule_client_open(node_.get(), service.c_str(), &given, &client));
        return Client(client);
    }

    // Opens a server of a service.
    Server server(const std::string &service, const ServiceOptions &options = {}) const {
        describe(options);
        const noctule_service_options_t given = options.given();
        noctule_server_t *server = nullptr;
        detail::check(noctule_server_open(node_.get(), service.c_str(), &given, &server));
        return Server(server);
    }

    // Opens a client of an action; options must name its type.
    ActionClient action_client(const std::string &action, const ActionOptions &options) const {
        return ActionClient(node_.get(), action, options);
    }

    // Opens a server of an action; options must name its type.
    ActionServer action_server(const std::string &action, const ActionOptions &options) const {
        return ActionServer(node_.get(), action, options);
    }

    // Opens parameters under the name that the node has in ROS 2, such as "/arm": none at first.
    Parameters parameters(const std::string &name) const {
        noctule_parameters_t *parameters = nullptr;
        detail::check(noctule_parameters_open(node_.get(), name.c_str(), &parameters));
        return Parameters(parameters);
    }

    // Opens a client of another node's parameters; each call waits up to the deadline.
    ParameterClient parameter_client(const std::string &name, nanoseconds deadline = std::chrono::seconds(5)) const {
        noctule_parameter_client_t *client = nullptr;
        detail::check(noctule_parameter_client_open(node_.get(), name.c_str(), deadline.count(), &client));
        return ParameterClient(client);
    }

    // Now on the node's clock.
    nanoseconds now() const noexcept { return nanoseconds(noctule_now_ns(node_.get())); }

    // A stamp of another clock on the node's.
    SourceTime source_time_of(StampClock clock, nanoseconds stamp) const {
        noctule_source_time_t time;
        detail::check(noctule_source_time_of(node_.get(), static_cast<int>(clock), stamp.count(), &time));
        return {nanoseconds(time.time_ns), detail::known(time.bound_ns, -1), detail::known(time.sigma_ns, -1)};
    }

    NodeId id() const {
        noctule_node_id_t id;
        detail::check(noctule_node_id(node_.get(), &id));
        return detail::id(id);
    }

    // Every other node, by number.
    std::vector<KnownNode> nodes() const {
        std::vector<KnownNode> nodes;
        const auto add = [](void *context, const noctule_known_node_t *node) {
            static_cast<std::vector<KnownNode> *>(context)->push_back(
                {detail::id(node->id), node->name, node->address, node->same_host});
        };
        detail::check(noctule_nodes(node_.get(), add, &nodes));
        return nodes;
    }

    // Every endpoint of other nodes.
    std::vector<KnownEndpoint> endpoints() const {
        std::vector<KnownEndpoint> endpoints;
        const auto add = [](void *context, const noctule_known_endpoint_t *from) {
            static_cast<std::vector<KnownEndpoint> *>(context)->push_back(
                {detail::id(from->node), from->node_name, from->topic, from->type_name, from->type_hash, from->same_host,
                 from->is_publisher, from->transient_local, static_cast<Reliability>(from->reliability), from->keep_last,
                 from->payload_bytes_max});
        };
        detail::check(noctule_endpoints(node_.get(), add, &endpoints));
        return endpoints;
    }

    NodeCounters counters() const {
        NodeCounters counters;
        detail::check(noctule_node_counters(node_.get(), &counters));
        return counters;
    }

    // Counts of the traffic with a node of another host; none if there never was any.
    std::optional<LinkCounters> link_counters(const NodeId &other) const {
        LinkCounters counters;
        const noctule_node_id_t id = detail::id(other);
        const int status = detail::check(noctule_link_counters(node_.get(), &id, &counters));
        return status == NOCTULE_NOTHING ? std::nullopt : std::optional<LinkCounters>(counters);
    }

    // Requests the time of another node and waits for the reply: by this node's clock when the request was sent and the reply received, by the
    // other's when the request arrived and the reply was sent.
    Exchange ping(const NodeId &other, nanoseconds timeout) const {
        noctule_exchange_t exchange;
        const noctule_node_id_t id = detail::id(other);
        detail::check(noctule_ping(node_.get(), &id, timeout.count(), &exchange));
        return exchange;
    }

private:
    // Without it other tools show bytes; all else is the same.
    void describe(const ServiceOptions &options) const noexcept {
        for (const char *description : {options.request_description, options.response_description})
            if (description) static_cast<void>(noctule_node_describe(node_.get(), description));
    }

    using Hook = std::function<void(std::string_view, std::string_view)>;

    detail::Owner<noctule_node_t, noctule_node_close> node_;
};

}  // namespace noctule

#endif
