// Writes /cpp/pose and the plain /cpp/state at 50 Hz until its input ends; prints what the other programs write, each with its age.

#include <poll.h>

#include <cstdio>

#include "program_in_cpp.hpp"

using demo_msgs::msg::Pose;

static Pose pose(std::uint32_t number) {
    Pose pose;
    pose.from = "cpp";
    pose.number = number;
    pose.position = {1.0 * number, -0.5 * number, 0.25 * number};
    for (std::uint32_t joint = 0; joint < number % 4; joint++)
        pose.joints.push_back(static_cast<float>(joint) + static_cast<float>(number) / 4);
    return pose;
}

static void print(noctule::TypedSubscriber<Pose> &topic) {
    while (const auto sample = topic.take()) {
        const Pose &pose = sample->value;
        if (!sample->age) continue;
        std::printf("%s %u %.3f %.3f %.3f", pose.from.c_str(), pose.number, pose.position[0], pose.position[1], pose.position[2]);
        for (const float joint : pose.joints) std::printf(" %.3f", static_cast<double>(joint));
        std::printf(": %lld ns old\n", static_cast<long long>(sample->age->value.count()));
        std::fflush(stdout);
    }
}

using demo_msgs::msg::plain::State;

static void set(State &state, std::uint32_t number) {
    state.is_even = number % 2 == 0;
    state.number = number;
    state.position = {1.0 * number, -0.5 * number, 0.25 * number};
    state.joints = static_cast<std::uint8_t>(number % 4);
    for (std::uint32_t joint = 0; joint < number % 4; joint++)
        state.joint[joint] = static_cast<float>(joint) + static_cast<float>(number) / 4;
}

static void print(const char *writer, noctule::PlainSubscriber<State> &topic) {
    while (const auto sample = topic.take()) {
        const State &state = **sample;
        if (!sample->age()) continue;
        const bool is_right = sample->is_in_place() && state.is_even == (state.number % 2 == 0);
        std::printf("%s_%s %u %.3f %.3f %.3f", is_right ? "plain" : "wrong", writer, state.number, state.position[0], state.position[1],
                    state.position[2]);
        for (std::uint32_t joint = 0; joint < state.joints && joint < 3; joint++)
            std::printf(" %.3f", static_cast<double>(state.joint[joint]));
        std::printf(": %lld ns old\n", static_cast<long long>(sample->age()->value.count()));
        std::fflush(stdout);
    }
}

// The action of another program.
template <typename Types>
struct Action {
    const char *program;
    noctule::TypedActionClient<Types> client;
    bool has_sent = false;

    // Sends a goal once the program is there, and prints its result.
    void go(bool is_there) {
        if (is_there && !has_sent) {
            has_sent = true;
            client.start({4});
        }
        while (const auto known = client.next(noctule::nanoseconds(0))) {
            if (known->event.error) throw *known->event.error;
            if (!known->result || known->event.status != noctule::GoalStatus::succeeded) continue;
            const auto &position = known->result->position;
            std::printf("acted_%s 4 %.3f %.3f %.3f\n", program, position[0], position[1], position[2]);
            std::fflush(stdout);
        }
    }
};

// Executes the goals of the others.
template <typename Server>
static void execute(Server &server) {
    while (auto goal = server.next(noctule::nanoseconds(0))) {
        try {
            goal->untyped().accept();
            goal->feedback({goal->value().number});
            goal->end(noctule::GoalStatus::succeeded, {pose(goal->value().number).position});
        } catch (const noctule::Error &) {
            // The client may have gone: that is no fault of this program.
        }
    }
}

int main() {
    const noctule::Node node("in_cpp");
    auto publisher = demo::in_cpp::open_cpp_pose(node);
    auto rust = demo::in_cpp::read_rust_pose(node);
    auto c = demo::in_cpp::read_c_pose(node);
    auto python = demo::in_cpp::read_python_pose(node);
    auto state = demo::in_cpp::open_cpp_state(node);
    auto rust_state = demo::in_cpp::read_rust_state(node);
    auto c_state = demo::in_cpp::read_c_state(node);
    auto python_state = demo::in_cpp::read_python_state(node);
    auto where = demo::in_cpp::client_rust_where(node);
    namespace own = demo::in_cpp;
    Action<own::types_of_rust_go> rust_go{"rust", own::client_rust_go(node)};
    Action<own::types_of_c_go> c_go{"c", own::client_c_go(node)};
    Action<own::types_of_python_go> python_go{"python", own::client_python_go(node)};
    auto goals = own::server_cpp_go(node);
    bool has_asked = false;
    pollfd input{0, POLLIN, 0};
    for (std::uint32_t number = 0; poll(&input, 1, 20) == 0; number++) {
        publisher.publish(pose(number));
        if (rust.untyped().statistics().taken > 0 && !has_asked) {
            // The program in Rust is there.
            has_asked = true;
            const auto position = where.call({4}).value.position;
            std::printf("served_rust 4 %.3f %.3f %.3f\n", position[0], position[1], position[2]);
        }
        print(rust);
        print(c);
        print(python);
        rust_go.go(rust.untyped().statistics().taken > 0);
        c_go.go(c.untyped().statistics().taken > 0);
        python_go.go(python.untyped().statistics().taken > 0);
        execute(goals);
        state.publish_in_place([number](State &place) { set(place, number); });
        print("rust", rust_state);
        print("c", c_state);
        print("python", python_state);
    }
}
