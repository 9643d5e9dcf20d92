/* Writes /c/pose at 50 Hz until its input ends; prints the poses of the other programs, each with its age. */

#include <poll.h>
#include <stdio.h>

#include "program_in_c.h"

static demo_msgs_Pose pose(uint32_t number) {
    demo_msgs_Pose pose;
    uint32_t joint;
    demo_msgs_Pose_init(&pose);
    memcpy(pose.from, "c", 2);
    pose.number = number;
    pose.position[0] = number;
    pose.position[1] = -(double)number / 2;
    pose.position[2] = (double)number / 4;
    pose.joints.count = number % 4;
    for (joint = 0; joint < pose.joints.count; joint++) pose.joints.data[joint] = (float)joint + (float)number / 4;
    return pose;
}

static void print(const noctule_sample_info_t *info) {
    demo_msgs_Pose pose;
    uint32_t joint;
    /* All of this type is bounded or has a limit: nothing needs memory beside the struct. */
    if (!demo_msgs_Pose_decode(&pose, info->bytes, (uint32_t)info->length_bytes, NULL) || info->age_ns == INT64_MIN) return;
    printf("%s %u %.3f %.3f %.3f", pose.from, (unsigned)pose.number, pose.position[0], pose.position[1], pose.position[2]);
    for (joint = 0; joint < pose.joints.count; joint++) printf(" %.3f", (double)pose.joints.data[joint]);
    printf(": %lld ns old\n", (long long)info->age_ns);
    fflush(stdout);
}

int main(void) {
    noctule_node_t *node;
    noctule_publisher_t *publisher;
    noctule_subscriber_t *others[3];
    struct pollfd input = {0, POLLIN, 0};
    uint8_t scratch[demo_msgs_Pose_CDR_MAX];
    uint32_t number, other;
    if (noctule_node_open("in_c", NULL, &node) < 0 || in_c_open_c_pose(node, &publisher) < 0 ||
        in_c_read_rust_pose(node, &others[0]) < 0 || in_c_read_cpp_pose(node, &others[1]) < 0 ||
        in_c_read_python_pose(node, &others[2]) < 0)
        return fprintf(stderr, "%s\n", noctule_last_error()), 1;
    for (number = 0; poll(&input, 1, 20) == 0; number++) {
        const demo_msgs_Pose value = pose(number);
        if (in_c_publish_c_pose(publisher, &value, scratch, sizeof scratch) < 0)
            return fprintf(stderr, "%s\n", noctule_last_error()), 1;
        for (other = 0; other < 3; other++) {
            noctule_sample_t *sample;
            noctule_sample_info_t info;
            while (noctule_take(others[other], &sample, &info) == NOCTULE_OK) {
                print(&info);
                noctule_sample_release(sample);
            }
        }
    }
    for (other = 0; other < 3; other++) noctule_subscriber_close(others[other]);
    noctule_publisher_close(publisher);
    noctule_node_close(node);
    return 0;
}
