// Ends of topics as a program on rclcpp has them, for rclcpp_rows.py and latency.py; what came is printed as one JSON object.
//
//   ends images TOPIC HZ BYTES SECONDS      publishes bytes, of which the first eight are the time
//   ends read TOPIC image SECONDS           reads them
//   ends nodes N single|multi|events SECONDS
//                                           N nodes in one executor; each publishes, reads its neighbour and calls its service
//   ends wait_set SECONDS                   a subscription, a timer and a guard condition without an executor
//   ends intra SECONDS                      a publisher and a subscription that pass their message by its pointer
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rclcpp/rclcpp.hpp>
#include <rclcpp/experimental/executors/events_executor/events_executor.hpp>
#include <std_msgs/msg/string.hpp>
#include <std_msgs/msg/u_int8_multi_array.hpp>
#include <std_srvs/srv/trigger.hpp>

using namespace std::chrono_literals;
using Bytes = std_msgs::msg::UInt8MultiArray;
using String = std_msgs::msg::String;
using Trigger = std_srvs::srv::Trigger;
using Clock = std::chrono::steady_clock;

namespace {

int64_t wall_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

double processor_ms() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto ms = [](const timeval &time) { return 1e3 * double(time.tv_sec) + 1e-3 * double(time.tv_usec); };
    return ms(used.ru_utime) + ms(used.ru_stime);
}

rclcpp::QoS reliable() { return rclcpp::QoS(10).reliable(); }

/// Spins for so long; processor time meanwhile, in milliseconds a second.
double spin(rclcpp::Executor &executor, double seconds) {
    const auto begin = Clock::now();
    const double before = processor_ms();
    rclcpp::TimerBase::SharedPtr end;
    auto node = std::make_shared<rclcpp::Node>("end");
    end = node->create_wall_timer(std::chrono::duration<double>(seconds), [&executor] { executor.cancel(); });
    executor.add_node(node);
    executor.spin();
    executor.remove_node(node);
    return (processor_ms() - before) / std::chrono::duration<double>(Clock::now() - begin).count();
}

void images(const std::string &topic, double hz, size_t size, double seconds) {
    auto node = std::make_shared<rclcpp::Node>("images");
    auto publisher = node->create_publisher<Bytes>(topic, reliable());
    Bytes message;
    message.data.resize(size);
    auto timer = node->create_wall_timer(std::chrono::duration<double>(1 / hz), [&] {
        const int64_t now = wall_ns();
        std::memcpy(message.data.data(), &now, sizeof now);
        publisher->publish(message);
    });
    rclcpp::executors::SingleThreadedExecutor executor;
    executor.add_node(node);
    std::printf("{\"processor_ms_s\": %.1f}\n", spin(executor, seconds));
}

void read(const std::string &topic, double seconds) {
    auto node = std::make_shared<rclcpp::Node>("reads");
    std::vector<double> ages_ms;
    Clock::time_point first, last;
    auto subscription = node->create_subscription<Bytes>(topic, reliable(), [&](Bytes::ConstSharedPtr message) {
        int64_t then = 0;
        std::memcpy(&then, message->data.data(), sizeof then);
        last = Clock::now();
        if (ages_ms.empty()) first = last;
        ages_ms.push_back(double(wall_ns() - then) / 1e6);
    });
    rclcpp::executors::SingleThreadedExecutor executor;
    executor.add_node(node);
    const double processor = spin(executor, seconds);
    const size_t count = ages_ms.size();
    const double span = std::chrono::duration<double>(last - first).count();
    std::printf("{\"samples\": %zu, \"hz\": %.1f, \"processor_ms_s\": %.1f", count,
                span > 0 ? double(count - 1) / span : 0.0, processor);
    if (count > 0) {
        std::sort(ages_ms.begin(), ages_ms.end());
        std::printf(", \"p50_ms\": %.3f, \"p99_ms\": %.3f", ages_ms[count / 2], ages_ms[count * 99 / 100]);
    }
    std::printf("}\n");
}

struct Counts {
    std::atomic<int> sent{0}, received{0}, asked{0}, answered{0};
};

/// One of a ring of nodes.
struct Member {
    std::shared_ptr<rclcpp::Node> node;
    rclcpp::CallbackGroup::SharedPtr group;
    rclcpp::Publisher<String>::SharedPtr publisher;
    rclcpp::Subscription<String>::SharedPtr subscription;
    rclcpp::Service<Trigger>::SharedPtr service;
    rclcpp::Client<Trigger>::SharedPtr client;
    rclcpp::TimerBase::SharedPtr timer;

    Member(int number, int all, Counts &counts) {
        node = std::make_shared<rclcpp::Node>("member_" + std::to_string(number), "/ring");
        group = node->create_callback_group(rclcpp::CallbackGroupType::Reentrant);
        const std::string own = std::to_string(number), next = std::to_string((number + 1) % all);
        publisher = node->create_publisher<String>("/ring/t" + own, reliable());
        rclcpp::SubscriptionOptions options;
        options.callback_group = group;
        subscription = node->create_subscription<String>(
            "/ring/t" + next, reliable(), [&counts](String::ConstSharedPtr) { counts.received++; }, options);
        service = node->create_service<Trigger>(
            "/ring/s" + own,
            [](const Trigger::Request::SharedPtr, Trigger::Response::SharedPtr response) { response->success = true; },
            rclcpp::ServicesQoS(), group);
        client = node->create_client<Trigger>("/ring/s" + next, rclcpp::ServicesQoS(), group);
        timer = node->create_wall_timer(100ms, [this, &counts] {
            publisher->publish(String().set__data("round"));
            counts.sent++;
            if (!client->service_is_ready()) return;
            counts.asked++;
            client->async_send_request(std::make_shared<Trigger::Request>(),
                                       [&counts](rclcpp::Client<Trigger>::SharedFuture reply) {
                                           if (reply.get()->success) counts.answered++;
                                       });
        }, group);
    }
};

std::unique_ptr<rclcpp::Executor> executor_of(const std::string &kind) {
    if (kind == "multi") return std::make_unique<rclcpp::executors::MultiThreadedExecutor>(rclcpp::ExecutorOptions(), 4);
    if (kind == "events") return std::make_unique<rclcpp::experimental::executors::EventsExecutor>();
    return std::make_unique<rclcpp::executors::SingleThreadedExecutor>();
}

void nodes(int all, const std::string &kind, double seconds) {
    Counts counts;
    std::vector<std::unique_ptr<Member>> members;
    for (int number = 0; number < all; number++) members.push_back(std::make_unique<Member>(number, all, counts));
    auto executor = executor_of(kind);
    for (auto &member : members) executor->add_node(member->node);
    const double processor = spin(*executor, seconds);
    // What is under way.
    for (auto &member : members) member->timer->cancel();
    spin(*executor, 1);
    std::printf("{\"nodes\": %d, \"sent\": %d, \"received\": %d, \"asked\": %d, \"answered\": %d, \"processor_ms_s\": %.1f}\n",
                all, counts.sent.load(), counts.received.load(), counts.asked.load(), counts.answered.load(), processor);
}

void wait_set(double seconds) {
    auto node = std::make_shared<rclcpp::Node>("waits");
    auto publisher = node->create_publisher<String>("/waited", reliable());
    auto subscription = node->create_subscription<String>("/waited", reliable(), [](String::ConstSharedPtr) {});
    auto guard = std::make_shared<rclcpp::GuardCondition>();
    auto timer = node->create_wall_timer(50ms, [] {});
    rclcpp::WaitSet set({{{subscription}}}, {guard}, {timer});
    int messages = 0, ticks = 0, guards = 0, timeouts = 0;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    while (Clock::now() < end) {
        auto result = set.wait(1s);
        if (result.kind() == rclcpp::WaitResultKind::Timeout) timeouts++;
        if (result.kind() != rclcpp::WaitResultKind::Ready) continue;
        const auto &ready = result.get_wait_set().get_rcl_wait_set();
        String message;
        rclcpp::MessageInfo info;
        if (ready.timers[0] && timer->call()) {
            ticks++;
            publisher->publish(String().set__data("tick"));
        }
        if (ready.guard_conditions[0]) guards++;
        if (ready.subscriptions[0] && subscription->take(message, info)) {
            messages++;
            guard->trigger();
        }
    }
    std::printf("{\"messages\": %d, \"ticks\": %d, \"guards\": %d, \"timeouts\": %d}\n", messages, ticks, guards, timeouts);
}

void intra(double seconds) {
    const auto options = rclcpp::NodeOptions().use_intra_process_comms(true);
    auto one = std::make_shared<rclcpp::Node>("one", options), other = std::make_shared<rclcpp::Node>("other", options);
    auto publisher = one->create_publisher<String>("/intra", reliable());
    std::atomic<const void *> last{nullptr};
    int sent = 0, received = 0, same = 0;
    auto subscription = other->create_subscription<String>("/intra", reliable(), [&](String::UniquePtr message) {
        received++;
        if (message.get() == last.load()) same++;
    });
    auto timer = one->create_wall_timer(20ms, [&] {
        auto message = std::make_unique<String>();
        message->data = "pointer";
        last = message.get();
        sent++;
        publisher->publish(std::move(message));
    });
    rclcpp::executors::SingleThreadedExecutor executor;
    executor.add_node(one);
    executor.add_node(other);
    spin(executor, seconds);
    timer->cancel();
    spin(executor, 0.5);
    std::printf("{\"sent\": %d, \"received\": %d, \"same_pointer\": %d}\n", sent, received, same);
}

} // namespace

int main(int argc, char **argv) {
    rclcpp::init(argc, argv);
    const std::vector<std::string> words(argv + 1, argv + argc);
    const std::string role = words.empty() ? "" : words[0];
    if (role == "images" && words.size() == 5) {
        images(words[1], std::stod(words[2]), std::stoul(words[3]), std::stod(words[4]));
    } else if (role == "read" && words.size() == 4) {
        read(words[1], std::stod(words[3]));
    } else if (role == "nodes" && words.size() == 4) {
        nodes(std::stoi(words[1]), words[2], std::stod(words[3]));
    } else if (role == "wait_set" && words.size() == 2) {
        wait_set(std::stod(words[1]));
    } else if (role == "intra" && words.size() == 2) {
        intra(std::stod(words[1]));
    } else {
        std::fprintf(stderr, "usage: ends images|read|nodes|wait_set|intra ...; see the head of ends.cpp\n");
        return 2;
    }
    rclcpp::shutdown();
    return 0;
}
