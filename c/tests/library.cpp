// Tests noctule.hpp beyond the C header: ownership, exceptions, types. Takes the domain as its argument, so that tests of
// one machine do not reach each other.
#include <noctule/noctule.hpp>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <thread>

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
    offered.qos.transient_local = true;
    offered.qos.reliability = noctule::Reliability::reliable;
    offered.qos.deadline = 1s;
    noctule::SubscriberOptions requested;
    requested.qos.transient_local = true;
    requested.qos.reliability = noctule::Reliability::reliable;
    requested.qos.deadline = 2s;
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

static void a_wait_set_waits_for_many_and_is_woken(std::uint32_t domain) {
    noctule::Node node("n", in(domain));
    noctule::PublisherOptions offered;
    offered.format = "msgpack";
    noctule::Publisher one = node.publisher("one", offered), two = node.publisher("two");
    noctule::Subscriber first = node.subscriber("one"), second = node.subscriber("two");
    CHECK(until_received(one, first, "x").info().format == "msgpack");
    CHECK(!until_received(two, second, "x").info().format);
    while (first.take() || second.take()) {}
    noctule::WaitSet set;
    two.publish("y");
    CHECK(set.wait({first.get(), second.get()}) == 1);
    CHECK(second.take()->bytes().text() == "y");
    CHECK(!set.wait({first.get(), second.get()}, 1ms));
    std::thread other([&] { set.wake(); });
    CHECK(!set.wait({first.get(), second.get()}));
    other.join();
    CHECK(first.statistics().taken >= 1 && first.statistics().bound == 0ns && !first.statistics().age_p99_9);
}

static void an_exception_of_a_callback_leaves_spin_and_stop_ends_it(std::uint32_t domain) {
    noctule::Node node("n", in(domain));
    noctule::Publisher publisher = node.publisher("number");
    noctule::Subscriber subscriber = node.subscriber("number");
    until_received(publisher, subscriber, "0");
    while (subscriber.take()) {}
    std::string heard;
    noctule::Dispatcher dispatcher;
    dispatcher.spin();
    dispatcher.on_sample(std::move(subscriber), [&](noctule::Sample sample) {
        heard += sample.bytes().text();
        if (heard == "1") throw std::runtime_error("on purpose");
        if (heard == "123") dispatcher.stop();
    });
    for (const char *text : {"1", "2", "3", "4"}) publisher.publish(std::string_view(text));
    bool thrown = false;
    try {
        dispatcher.spin();
    } catch (const std::runtime_error &error) {
        thrown = error.what() == std::string("on purpose");
    }
    CHECK(thrown && heard == "1");
    dispatcher.spin();
    CHECK(heard == "123" && !dispatcher.spin_once());
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
    offered.qos.lifespan = -1ns;
    CHECK(fails([&] { node.publisher("t", offered); }, NOCTULE_ERROR_ARGUMENT, "lifespan_ns"));
    noctule::SubscriberOptions requested;
    requested.qos.lifespan = -1ns;
    CHECK(fails([&] { node.subscriber("t", requested); }, NOCTULE_ERROR_ARGUMENT, "lifespan_ns"));
}

static_assert(std::is_nothrow_move_constructible_v<noctule::Node> && !std::is_copy_constructible_v<noctule::Node>);
static_assert(std::is_nothrow_move_constructible_v<noctule::Sample> && !std::is_copy_constructible_v<noctule::Sample>);

static void a_loan_a_descriptor_and_what_is_known_of_others(std::uint32_t domain) {
    std::atomic<int> mismatches{0};
    noctule::NodeOptions options = in(domain);
    options.on_notice = [&](std::string_view kind, std::string_view) { mismatches += kind == "mismatch"; };
    noctule::Node here("here", options), there("there", in(domain));
    noctule::PublisherOptions offered;
    offered.type_name = "one";
    noctule::SubscriberOptions requested;
    requested.type_name = "another";
    noctule::Publisher publisher = there.publisher("lent"), other = there.publisher("other", offered);
    noctule::Subscriber subscriber = here.subscriber("lent"), unserved = here.subscriber("other", requested);
    const auto first = until_received(publisher, subscriber, "first").info();
    CHECK(first.publisher == there.id() && first.route == noctule::Route::shared_memory);
    while (subscriber.take()) {}
    pollfd polled{subscriber.descriptor(), POLLIN, 0};
    while (subscriber.take()) {}
    CHECK(poll(&polled, 1, 0) == 0);
    {
        noctule::Loan dropped = publisher.loan(8);
        noctule::Loan moved = std::move(dropped);
    }
    noctule::Loan loan = publisher.loan(100);
    std::fill_n(loan.data(), loan.size(), std::uint8_t{7});
    loan.publish();
    CHECK(fails([&] { publisher.loan(1 << 20); }, NOCTULE_ERROR_TOO_LONG, "payload_bytes_max"));
    CHECK(poll(&polled, 1, 20000) == 1);
    auto lent = subscriber.take();
    CHECK(lent && lent->bytes().size() == 100 && lent->bytes()[99] == 7);
    lent.reset();
    const auto nodes = here.nodes();
    CHECK(std::any_of(nodes.begin(), nodes.end(), [&](const auto &node) { return node.id == there.id() && node.name == "there"; }));
    const auto endpoints = here.endpoints();
    CHECK(std::any_of(endpoints.begin(), endpoints.end(),
                      [](const auto &endpoint) { return endpoint.topic == "lent" && endpoint.is_publisher; }));
    CHECK(here.counters().unacknowledged_bytes == 0 && publisher.counters().published >= 2);
    const auto stamp = std::chrono::steady_clock::now().time_since_epoch();
    const noctule::SourceTime time = there.source_time_of(noctule::StampClock::monotonic, stamp);
    CHECK(time.bound && time.time <= there.now() + *time.bound);
    publisher.publish_uncertain("x", 1, time);
    CHECK(subscriber.receive(20s)->age()->bound >= time.bound);
    while (mismatches == 0) poll(nullptr, 0, 5);
}

// Two threads that publish by one publisher: each call publishes, or throws BUSY; nothing is lost in between.
static void a_second_thread_is_an_error_and_loses_nothing(std::uint32_t domain) {
    noctule::Node node("n", in(domain));
    noctule::PublisherOptions offered;
    offered.qos.keep_last = 60000;
    offered.payload_bytes_max = 8;
    noctule::Publisher publisher = node.publisher("shared", offered);
    noctule::Subscriber subscriber = node.subscriber("shared");
    until_received(publisher, subscriber, "first");
    while (subscriber.take()) {}
    const std::uint64_t before = publisher.counters().published;
    std::atomic<std::uint64_t> published{0}, busy{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) {
        threads.emplace_back([&] {
            for (int n = 0; n < 10000; n++) {
                try {
                    publisher.publish("12345678");
                    published++;
                } catch (const noctule::Error &error) {
                    CHECK(error.status() == NOCTULE_ERROR_BUSY);
                    busy++;
                }
            }
        });
    }
    for (std::thread &thread : threads) thread.join();
    CHECK(published + busy == 40000 && publisher.counters().published == before + published);
    std::uint64_t taken = 0;
    while (const auto sample = subscriber.take()) taken += 1 + sample->info().missed;
    CHECK(taken == published);
}

// A server on a thread of its own answers, fails with what it throws, and a client learns each.
static void a_call_ends_with_a_response_or_with_its_reason(std::uint32_t domain) {
    using namespace std::chrono_literals;
    noctule::Node node("n", in(domain));
    noctule::ServiceOptions options;
    options.deadline = 60s;
    noctule::Client client = node.client("/reverse", options);
    std::atomic<bool> is_over{false};
    std::thread thread([&] {
        noctule::Server server = node.server("/reverse");
        while (!is_over) {
            server.serve(20ms, [](const noctule::Request &request) {
                if (request.bytes().empty()) throw std::runtime_error("nothing to reverse");
                const auto text = request.bytes().text();
                CHECK(request.deadline() == 60s && request.age());
                return std::string(text.rbegin(), text.rend());
            });
        }
    });
    const noctule::Reply reply = client.call("abc", 3);
    CHECK(reply.bytes().text() == "cba" && reply.publisher() == node.id() && reply.age()->bound == 0ns);
    try {
        client.call("", 0);
        CHECK(false);
    } catch (const noctule::Error &error) {
        CHECK(error.status() == NOCTULE_ERROR_NO_REPLY && std::string(error.what()).find("nothing to reverse") != std::string::npos);
    }
    const std::int64_t call = client.start("xy", 2);
    bool is_answered = false;
    CHECK(client.next(std::nullopt, [&](std::int64_t ended, const noctule::Reply *answer, const noctule::Error *error) {
        is_answered = ended == call && error == nullptr && answer->bytes().text() == "yx";
    }));
    CHECK(is_answered && !client.cancel(call) && !client.next(0ns, [](auto, auto, auto) {}));
    is_over = true;
    thread.join();
}

// A server on a thread of its own counts until it is canceled.
static void a_goal_gives_feedback_is_canceled_and_ends(std::uint32_t domain) {
    noctule::Node node("n", in(domain));
    noctule::ActionOptions options;
    options.type_name = "demo/action/Count";
    options.deadline = 60s;
    std::atomic<int> asked{0};
    options.on_cancel = [&](const noctule::GoalId &) { return ++asked > 1; };
    noctule::ActionClient client = node.action_client("/count", options);
    noctule::ActionServer server = node.action_server("/count", options);
    std::thread thread([&] {
        std::optional<noctule::Goal> goal = server.next();
        std::array<std::uint8_t, 24> feedback = {0, 1, 0, 0};
        feedback[20] = goal->bytes()[20];
        goal->accept();
        goal->feedback(feedback.data(), feedback.size());
        CHECK(goal->wait_for_cancel(std::nullopt) && asked == 2);
        const std::array<std::uint8_t, 8> response = {0, 1, 0, 0};
        goal->end(noctule::GoalStatus::canceled, response.data(), response.size());
    });
    CHECK(client.wait_for_server(60s));
    std::array<std::uint8_t, 24> request = {0, 1, 0, 0};
    request[20] = 9;
    const noctule::GoalId id = client.start(request.data(), request.size());
    std::vector<int> codes;
    bool has_feedback = false;
    while (const auto event = client.next()) {
        CHECK(event->goal == id && !event->error);
        if (event->kind == NOCTULE_EVENT_FEEDBACK) {
            has_feedback = event->bytes.at(20) == 9 && event->age;
            client.cancel(id);
        } else if (event->kind == NOCTULE_EVENT_CANCEL) {
            codes.push_back(event->cancel_code);
            if (codes.size() == 1) client.cancel(id);
        } else if (event->kind == NOCTULE_EVENT_RESULT) {
            CHECK(event->status == noctule::GoalStatus::canceled && event->bytes.size() == 8 && event->bytes[4] == 5);
        }
    }
    thread.join();
    CHECK(has_feedback && codes == std::vector<int>({1, 0}));
    CHECK(fails([&] { client.start(request.data(), 3); }, NOCTULE_ERROR_ARGUMENT, "3 bytes are no request"));
}

// Values of every type come back as they were, and a sentence refuses.
static void parameters_are_values_of_ten_types(std::uint32_t domain) {
    using namespace std::chrono_literals;
    noctule::Node node("parameters", in(domain));
    noctule::Parameters parameters = node.parameters("/arm");
    noctule::ParameterClient client = node.parameter_client("/arm", 60s);
    using Texts = std::vector<std::string>;
    const std::vector<std::pair<std::string, noctule::Parameter>> values = {
        {"a", true}, {"b", std::int64_t(-5)}, {"c", 0.5}, {"d", std::string("text")}, {"e", std::vector<std::uint8_t>{0, 255}},
        {"f", std::vector<bool>{true, false}}, {"g", std::vector<std::int64_t>{1, -1}}, {"h", std::vector<double>{}},
        {"i", Texts{"x", ""}}};
    for (const auto &[name, value] : values) parameters.declare(name, value);
    CHECK(client.list().size() == values.size());
    for (const auto &[name, value] : values) {
        client.set(name, value);
        CHECK(client.get(name) == value && parameters.get(name) == value);
    }
    CHECK(!client.get("nothing") && !parameters.get("nothing"));
    parameters.on_set([](const std::string &name, const noctule::Parameter &) -> std::optional<std::string> {
        if (name == "a") return "a stays";
        if (name == "b") throw std::runtime_error("b stays");
        return std::nullopt;
    });
    for (const char *name : {"a", "b"}) {
        std::string why;
        try {
            client.set(name, name[0] == 'a' ? noctule::Parameter(false) : noctule::Parameter(std::int64_t(1)));
        } catch (const noctule::Error &error) {
            why = error.what();
        }
        CHECK(why == std::string(name) + " stays");
    }
    client.set("c", 1.5);
    CHECK(parameters.get("c") == noctule::Parameter(1.5));
}

static void the_latest_sample_is_taken_and_what_it_passes_over_is_counted(std::uint32_t domain) {
    noctule::Node node("n", in(domain));
    noctule::Publisher publisher = node.publisher("latest");
    noctule::Subscriber subscriber = node.subscriber("latest");
    until_received(publisher, subscriber, "first");
    while (subscriber.take()) {}
    CHECK(!subscriber.take_latest());
    for (const char *text : {"1", "2", "3", "4"}) publisher.publish(std::string_view(text));
    {
        const auto latest = subscriber.take_latest();
        CHECK(latest && latest->bytes().text() == "4" && latest->info().missed == 3);
    }
    CHECK(!subscriber.take_latest() && !subscriber.take());
}

// Samples between a node with these options and a plain one come by this route.
static void exchanges_by(noctule::NodeOptions options, noctule::Route route) {
    noctule::Node plain("plain", in(options.domain)), node("special", options);
    noctule::Publisher out = node.publisher("out"), back = plain.publisher("back");
    noctule::Subscriber far = plain.subscriber("out"), near = node.subscriber("back");
    CHECK(until_received(out, far, "x").info().route == route);
    CHECK(until_received(back, near, "y").info().route == route);
    const auto times = plain.ping(node.id(), 60s);
    CHECK(times.sent_ns <= times.arrived_ns && times.arrived_ns <= times.replied_ns && times.replied_ns <= times.received_ns);
    const auto link = plain.link_counters(node.id());
    CHECK(link.has_value() == (route == noctule::Route::udp) && (!link || link->delivered >= 1));
}

static void options_of_a_node_are_passed_on(std::uint32_t domain) {
    noctule::NodeOptions options = in(domain);
    options.interface_address = "127.0.0.1";
    exchanges_by(options, noctule::Route::shared_memory);
    options.shared_memory = false;
    exchanges_by(options, noctule::Route::udp);
    options.interface_address = "lo";
    CHECK(fails([&] { noctule::Node("n", options); }, NOCTULE_ERROR_ARGUMENT, "lo is no IPv4 address"));
    if (geteuid() != 0) return;  // Only root can become another user.
    const std::uint32_t stranger = 65534;
    for (const bool is_named : {false, true}) {
        const pid_t child = fork();
        if (child == 0) {
            if (setgid(stranger) != 0 || setuid(stranger) != 0) _exit(3);
            noctule::Node other("other", in(domain));
            noctule::Subscriber subscriber = other.subscriber("shared");
            const auto sample = subscriber.receive(60s);
            _exit(sample ? static_cast<int>(sample->info().route) : 4);
        }
        noctule::NodeOptions shares = in(domain);
        if (is_named) shares.share_with_group = stranger;
        shares.on_notice = [](std::string_view, std::string_view) {};
        noctule::Node node("n", shares);
        noctule::Publisher publisher = node.publisher("shared");
        int status = 0;
        while (waitpid(child, &status, WNOHANG) == 0) {
            publisher.publish("x");
            poll(nullptr, 0, 1);
        }
        const auto route = is_named ? noctule::Route::shared_memory : noctule::Route::udp;
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(route));
    }
}

int main(int count, char **arguments) {
    const auto domain = static_cast<std::uint32_t>(count > 1 ? std::atoi(arguments[1]) : 0);
    a_sample_is_borrowed_moved_and_given_back(domain);
    the_elements_of_a_container_are_published(domain);
    what_cannot_be_is_thrown_with_its_sentence(domain);
    a_wait_set_waits_for_many_and_is_woken(domain);
    an_exception_of_a_callback_leaves_spin_and_stop_ends_it(domain);
    a_loan_a_descriptor_and_what_is_known_of_others(domain);
    the_latest_sample_is_taken_and_what_it_passes_over_is_counted(domain);
    options_of_a_node_are_passed_on(domain);
    a_second_thread_is_an_error_and_loses_nothing(domain);
    a_call_ends_with_a_response_or_with_its_reason(domain);
    a_goal_gives_feedback_is_canceled_and_ends(domain);
    parameters_are_values_of_ten_types(domain);
    if (failures == 0) std::cout << "c++ library: all tests passed\n";
    return failures != 0;
}
