/* Writes /c/pose and the plain /c/state at 50 Hz until its input ends; prints what the other programs write, each with its age. */

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

/* Asks the program in Rust where it is. */
static int ask(noctule_client_t *client) {
    const demo_msgs_srv_Where_Request request = {4};
    demo_msgs_srv_Where_Response response;
    noctule_reply_t *reply;
    noctule_sample_info_t info;
    uint8_t scratch[demo_msgs_srv_Where_Request_CDR_MAX];
    const int status = in_c_call_rust_where(client, &request, scratch, sizeof scratch, &response, NULL, &reply, &info);
    if (status < 0) return status;
    printf("served_rust 4 %.3f %.3f %.3f\n", response.position[0], response.position[1], response.position[2]);
    fflush(stdout);
    noctule_reply_release(reply);
    return status;
}

/* The action of another program. */
typedef struct {
    const char *program;
    noctule_action_client_t *client;
    int (*send)(noctule_action_client_t *, const demo_msgs_action_Go_Goal *, uint8_t *, uint32_t, uint8_t *);
    int (*next)(noctule_action_client_t *, int64_t, noctule_goal_event_t *, demo_msgs_action_Go_Feedback *, demo_msgs_action_Go_Result *,
                noctule_memory_t *);
    bool is_there, has_sent;
} action_t;

/* Sends a goal once the program is there, and prints its result. */
static int go(action_t *action) {
    const demo_msgs_action_Go_Goal goal = {4};
    demo_msgs_action_Go_Feedback feedback;
    demo_msgs_action_Go_Result result;
    noctule_goal_event_t event;
    uint8_t scratch[demo_msgs_action_Go_SendGoal_Request_CDR_MAX];
    int status;
    if (action->is_there && !action->has_sent) {
        action->has_sent = true;
        status = action->send(action->client, &goal, scratch, sizeof scratch, NULL);
        if (status < 0) return status;
    }
    while ((status = action->next(action->client, 0, &event, &feedback, &result, NULL)) == NOCTULE_OK) {
        if (event.kind == NOCTULE_EVENT_RESULT && event.status == NOCTULE_GOAL_SUCCEEDED)
            printf("acted_%s 4 %.3f %.3f %.3f\n", action->program, result.position[0], result.position[1], result.position[2]);
        fflush(stdout);
        noctule_goal_message_release(event.message);
    }
    return status;
}

/* Executes the goals of the others. */
static int execute(noctule_action_server_t *server) {
    demo_msgs_action_Go_Goal value;
    noctule_goal_t *goal;
    uint8_t scratch[demo_msgs_action_Go_GetResult_Response_CDR_MAX + demo_msgs_action_Go_FeedbackMessage_CDR_MAX];
    int status;
    while ((status = in_c_receive_c_go(server, 0, &value, NULL, &goal)) == NOCTULE_OK) {
        const demo_msgs_Pose at = pose(value.number);
        demo_msgs_action_Go_Feedback feedback;
        demo_msgs_action_Go_Result result;
        feedback.at = value.number;
        memcpy(result.position, at.position, sizeof result.position);
        /* The client may have gone: that is no fault of this program. */
        if (noctule_goal_accept(goal, true) == NOCTULE_OK) {
            (void)in_c_feedback_c_go(goal, &feedback, scratch, sizeof scratch);
            (void)in_c_end_c_go(goal, NOCTULE_GOAL_SUCCEEDED, &result, scratch, sizeof scratch);
        }
        noctule_goal_close(goal);
    }
    return status;
}

/* Writes a state where it will be read. */
static void set(demo_msgs_State_plain *state, uint32_t number) {
    uint32_t joint;
    memset(state, 0, sizeof *state);
    state->is_even = number % 2 == 0;
    state->number = number;
    state->position[0] = number;
    state->position[1] = -(double)number / 2;
    state->position[2] = (double)number / 4;
    state->joints = (uint8_t)(number % 4);
    for (joint = 0; joint < number % 4; joint++) state->joint[joint] = (float)joint + (float)number / 4;
}

static void print_state(const char *writer, const noctule_sample_info_t *info, const demo_msgs_State_plain *state) {
    uint32_t joint;
    bool is_right;
    if (state == NULL || info->age_ns == INT64_MIN) return;
    is_right = (const void *)state == info->bytes && state->is_even == (state->number % 2 == 0);
    printf("%s_%s %u %.3f %.3f %.3f", is_right ? "plain" : "wrong", writer, (unsigned)state->number, state->position[0],
           state->position[1], state->position[2]);
    for (joint = 0; joint < state->joints && joint < 3; joint++) printf(" %.3f", (double)state->joint[joint]);
    printf(": %lld ns old\n", (long long)info->age_ns);
    fflush(stdout);
}

int main(void) {
    noctule_node_t *node;
    noctule_client_t *where;
    bool has_asked = false;
    noctule_action_server_t *goals;
    action_t actions[3] = {{"rust", NULL, in_c_send_rust_go, in_c_next_rust_go, false, false},
                           {"cpp", NULL, in_c_send_cpp_go, in_c_next_cpp_go, false, false},
                           {"python", NULL, in_c_send_python_go, in_c_next_python_go, false, false}};
    noctule_publisher_t *publisher, *states;
    noctule_subscriber_t *others[3], *of_rust, *of_cpp, *of_python;
    struct pollfd input = {0, POLLIN, 0};
    uint8_t scratch[demo_msgs_Pose_CDR_MAX];
    uint32_t number, other;
    if (noctule_node_open("in_c", NULL, &node) < 0 || in_c_open_c_pose(node, &publisher) < 0 ||
        in_c_read_rust_pose(node, &others[0]) < 0 || in_c_read_cpp_pose(node, &others[1]) < 0 ||
        in_c_read_python_pose(node, &others[2]) < 0 || in_c_open_c_state(node, &states) < 0 ||
        in_c_read_rust_state(node, &of_rust) < 0 || in_c_read_cpp_state(node, &of_cpp) < 0 || in_c_read_python_state(node, &of_python) < 0 ||
        in_c_client_rust_where(node, &where) < 0 || in_c_client_rust_go(node, &actions[0].client) < 0 ||
        in_c_client_cpp_go(node, &actions[1].client) < 0 || in_c_client_python_go(node, &actions[2].client) < 0 ||
        in_c_server_c_go(node, NULL, NULL, scratch, sizeof scratch, &goals) < 0)
        return fprintf(stderr, "%s\n", noctule_last_error()), 1;
    for (number = 0; poll(&input, 1, 20) == 0; number++) {
        const demo_msgs_Pose value = pose(number);
        noctule_sample_t *sample;
        noctule_sample_info_t info;
        demo_msgs_State_plain *place, copy;
        if (in_c_publish_c_pose(publisher, &value, scratch, sizeof scratch) < 0)
            return fprintf(stderr, "%s\n", noctule_last_error()), 1;
        for (other = 0; other < 3; other++) {
            while (noctule_take(others[other], &sample, &info) == NOCTULE_OK) {
                print(&info);
                noctule_sample_release(sample);
                actions[other].is_there = true;
                if (other == 0 && !has_asked) {
                    /* The program in Rust is there. */
                    has_asked = true;
                    if (ask(where) < 0) return fprintf(stderr, "%s\n", noctule_last_error()), 1;
                }
            }
        }
        for (other = 0; other < 3; other++) {
            if (go(&actions[other]) < 0) return fprintf(stderr, "%s\n", noctule_last_error()), 1;
        }
        if (execute(goals) < 0) return fprintf(stderr, "%s\n", noctule_last_error()), 1;
        if (in_c_loan_c_state(states, &place) < 0) return fprintf(stderr, "%s\n", noctule_last_error()), 1;
        set(place, number);
        if (in_c_publish_loan_c_state(states) < 0) return fprintf(stderr, "%s\n", noctule_last_error()), 1;
        for (; noctule_take(of_rust, &sample, &info) == NOCTULE_OK; noctule_sample_release(sample))
            print_state("rust", &info, in_c_value_of_rust_state(&info, &copy));
        for (; noctule_take(of_cpp, &sample, &info) == NOCTULE_OK; noctule_sample_release(sample))
            print_state("cpp", &info, in_c_value_of_cpp_state(&info, &copy));
        for (; noctule_take(of_python, &sample, &info) == NOCTULE_OK; noctule_sample_release(sample))
            print_state("python", &info, in_c_value_of_python_state(&info, &copy));
    }
    for (other = 0; other < 3; other++) {
        noctule_subscriber_close(others[other]);
        noctule_action_client_close(actions[other].client);
    }
    noctule_action_server_close(goals);
    noctule_subscriber_close(of_rust);
    noctule_subscriber_close(of_cpp);
    noctule_subscriber_close(of_python);
    noctule_publisher_close(publisher);
    noctule_publisher_close(states);
    noctule_client_close(where);
    noctule_node_close(node);
    return 0;
}
