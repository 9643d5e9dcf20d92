// What noctule.hpp adds to the C header: ownership, exceptions, types. Takes the domain as its argument, so that tests of
// one machine do not hear each other.
#include <noctule/noctule.hpp>

#include <array>
#include <cstdlib>
#include <functional>
#include <iostream>

using namespace std::chrono_literals;

static int failures = 0;

static void check(bool truth, const char *what, int line) {
    if (truth) return;
    std::cerr << "library.cpp:" << line << ": " << what << "\n";
    failures++;
}

#define CHECK(truth) check((truth), #truth, __LINE__)

// The call throws an error of this kind, and its sentence has this word.
static bool fails(const std::function<void()> &call, int status, const char *word) {
    try {
        call();
    } catch (const noctule::Error &error) {
        return error.status() == status && std::string(error.what()).find(word) != std::string::npos;
    }
    return false;
}

static noctule::NodeOptions in(std::uint32_t domain) {
    noctule::NodeOptions options;
    options.domain = domain;
    return options;
}

// Publishes until the subscriber has something: no fixed times.
static noctule::Sample until_received(noctule::Publisher &publisher, noctule::Subscriber &subscriber,
                                      std::string_view text) {
    for (int i = 0; i < 1000; i++) {
        publisher.publish(text);
        if (auto sample = subscriber.receive(20ms)) return std::move(*sample);
    }
    throw std::runtime_error("nothing was received");
}

static void a_sample_is_borrowed_moved_and_given_back(std::uint32_t domain) {
    noctule::Node a("a", in(domain)), b("b", in(domain));
    noctule::Publisher publisher = a.publisher("imu");
    noctule::Subscriber subscriber = b.subscriber("imu");
    noctule::Sample sample = until_received(publisher, subscriber, "sample");
    CHECK(sample.bytes().text() == "sample" && sample.bytes().size() == 6 && sample.bytes()[0] == 's');
    CHECK(std::string(sample.bytes().begin(), sample.bytes().end()) == "sample");
    CHECK(sample.age() && sample.age()->value >= 0ns && sample.age()->bound == 0ns && sample.age()->sigma == 0ns);
    const noctule::SampleInfo info = sample.info();
    CHECK(info.receive_time - *info.source_time == info.age->value && info.receive_time <= b.now());
    CHECK(publisher.readers() == 1 && subscriber.publishers() == 1);
    CHECK(fails([&] { while (subscriber.take()) {} publisher.publish("next"); (void)subscriber.take(); },
                NOCTULE_ERROR_BORROWED, "borrow"));
    {
        const noctule::Sample moved = std::move(sample);
        CHECK(moved.bytes().text() == "sample");
    }
    CHECK(subscriber.take()->bytes().text() == "next");
    CHECK(!subscriber.take() && !subscriber.receive(1ms));
}

static void the_elements_of_a_container_are_published(std::uint32_t domain) {
    noctule::Node node("n", in(domain));
    noctule::PublisherOptions offered;
    offered.transient_local = true;
    offered.reliability = noctule::Reliability::reliable;
    offered.deadline = 1s;
    noctule::SubscriberOptions requested;
    requested.transient_local = true;
    requested.reliability = noctule::Reliability::reliable;
    requested.deadline = 2s;
    requested.wait = noctule::Wait::hybrid;
    requested.type_name = "bytes";
    requested.borrows = 3;
    noctule::Publisher publisher = node.publisher("joints", offered);
    publisher.publish(std::vector<double>{1.0, 2.0});
    publisher.publish(std::array<std::int16_t, 3>{1, 2, 3});
    publisher.publish_at("old", 3, node.now() - 1s);
    noctule::Subscriber subscriber = node.subscriber("joints", requested);
    const auto doubles = subscriber.receive(20s), integers = subscriber.receive(20s), old = subscriber.receive(20s);
    CHECK(doubles && reinterpret_cast<const double *>(doubles->bytes().data())[1] == 2.0 && doubles->bytes().size() == 16);
    CHECK(integers && integers->bytes().size() == 6);
    CHECK(old && old->age()->value >= 1s);
}

static void what_cannot_be_is_thrown_with_its_sentence(std::uint32_t domain) {
    noctule::NodeOptions options = in(domain);
    options.static_peers = {"127.0.0.1", "nowhere"};
    CHECK(fails([&] { noctule::Node("n", options); }, NOCTULE_ERROR_ARGUMENT, "nowhere"));
    options.static_peers.clear();
    options.swarm_key = "/no/such/key";
    CHECK(fails([&] { noctule::Node("n", options); }, NOCTULE_ERROR_ARGUMENT, "/no/such/key"));
    noctule::Node node("n", in(domain));
    CHECK(fails([&] { node.publisher(""); }, NOCTULE_ERROR_ARGUMENT, "no name"));
    CHECK(fails([&] { node.subscriber(""); }, NOCTULE_ERROR_ARGUMENT, "no name"));
    noctule::PublisherOptions offered;
    offered.payload_bytes_max = 4;
    CHECK(fails([&] { node.publisher("t", offered).publish("12345"); }, NOCTULE_ERROR_TOO_LONG, "payload_bytes_max"));
    offered.lifespan = -1ns;
    CHECK(fails([&] { node.publisher("t", offered); }, NOCTULE_ERROR_ARGUMENT, "lifespan_ns"));
    noctule::SubscriberOptions requested;
    requested.lifespan = -1ns;
    CHECK(fails([&] { node.subscriber("t", requested); }, NOCTULE_ERROR_ARGUMENT, "lifespan_ns"));
}

static_assert(std::is_nothrow_move_constructible_v<noctule::Node> && !std::is_copy_constructible_v<noctule::Node>);
static_assert(std::is_nothrow_move_constructible_v<noctule::Sample> && !std::is_copy_constructible_v<noctule::Sample>);

int main(int count, char **arguments) {
    const auto domain = static_cast<std::uint32_t>(count > 1 ? std::atoi(arguments[1]) : 0);
    a_sample_is_borrowed_moved_and_given_back(domain);
    the_elements_of_a_container_are_published(domain);
    what_cannot_be_is_thrown_with_its_sentence(domain);
    if (failures == 0) std::cout << "c++ library: all tests passed\n";
    return failures != 0;
}
