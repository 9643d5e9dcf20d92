// Writes /cpp/pose at 50 Hz until its input ends; prints the poses of the other programs, each with its age.

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

int main() {
    const noctule::Node node("in_cpp");
    auto publisher = demo::in_cpp::open_cpp_pose(node);
    auto rust = demo::in_cpp::read_rust_pose(node);
    auto c = demo::in_cpp::read_c_pose(node);
    auto python = demo::in_cpp::read_python_pose(node);
    pollfd input{0, POLLIN, 0};
    for (std::uint32_t number = 0; poll(&input, 1, 20) == 0; number++) {
        publisher.publish(pose(number));
        print(rust);
        print(c);
        print(python);
    }
}
