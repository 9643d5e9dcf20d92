/* Generated clients and servers of an action in C, in one process: values without and with as many elements as there is room for, the result of a goal
 * that has none, and bytes that are no value. Takes the domain as its argument. */
#include "check.h"
#include "program_arm.h"

#include <stdio.h>
#include <stdlib.h>

enum { PATH_MAX_COUNT = 64, SCRATCH_BYTES = 1024 };

typedef struct {
    noctule_action_client_t *client;
    noctule_action_server_t *server;
    uint64_t place[256];
    noctule_memory_t memory;
    uint8_t scratch[SCRATCH_BYTES];
    typed_msgs_action_Reach_Feedback feedback;
    typed_msgs_action_Reach_Result result;
} bench_t;

static typed_msgs_action_Reach_Goal value(const double *path, uint32_t count, const char *name) {
    typed_msgs_action_Reach_Goal goal;
    typed_msgs_action_Reach_Goal_init(&goal);
    goal.path.data = path;
    goal.path.count = count;
    goal.name.text = name;
    goal.name.length = (uint32_t)strlen(name);
    return goal;
}

/* The next goal at the server. Copies of requests go out meanwhile. */
static noctule_goal_t *received(bench_t *bench, typed_msgs_action_Reach_Goal *goal) {
    noctule_goal_t *at_server = NULL;
    noctule_goal_event_t event;
    bench->memory.used = 0;
    while (arm_receive_arm_reach(bench->server, 1000000, goal, &bench->memory, &at_server) == NOCTULE_NOTHING) {
        /* Of goals that were rejected. */
        (void)arm_next_arm_reach(bench->client, 1000000, &event, &bench->feedback, &bench->result, &bench->memory);
        noctule_goal_message_release(event.message);
    }
    return at_server;
}

/* The status of arm_next_arm_reach at the next event of this kind. */
static int until(bench_t *bench, int kind, noctule_goal_event_t *event) {
    for (;;) {
        const int status = arm_next_arm_reach(bench->client, -1, event, &bench->feedback, &bench->result, &bench->memory);
        if (event->kind == kind) return status;
        noctule_goal_message_release(event->message);
    }
}

static void values_of_any_length_arrive(bench_t *bench) {
    static const uint32_t counts[] = {0, 1, PATH_MAX_COUNT};
    double path[PATH_MAX_COUNT];
    float left[PATH_MAX_COUNT];
    uint32_t i, at;
    for (i = 0; i < PATH_MAX_COUNT; i++) path[i] = i / 4.0, left[i] = (float)i / 8;
    for (at = 0; at < sizeof counts / sizeof *counts; at++) {
        const typed_msgs_action_Reach_Goal sent = value(path, counts[at], at == 0 ? "" : "elbow");
        typed_msgs_action_Reach_Goal goal;
        typed_msgs_action_Reach_Feedback feedback;
        typed_msgs_action_Reach_Result result;
        noctule_goal_event_t event;
        noctule_goal_t *at_server;
        uint8_t id[16];
        CHECK(arm_send_arm_reach(bench->client, &sent, bench->scratch, sizeof bench->scratch, id) == NOCTULE_OK);
        at_server = received(bench, &goal);
        CHECK(goal.path.count == counts[at] && goal.name.length == sent.name.length && memcmp(goal.name.text, "elbow", goal.name.length) == 0);
        for (i = 0; i < goal.path.count; i++) CHECK(goal.path.data[i] == path[i]);
        CHECK(noctule_goal_accept(at_server, true) == NOCTULE_OK);
        feedback.left.data = left;
        feedback.left.count = counts[at];
        CHECK(arm_feedback_arm_reach(at_server, &feedback, bench->scratch, sizeof bench->scratch) == NOCTULE_OK);
        CHECK(until(bench, NOCTULE_EVENT_FEEDBACK, &event) == NOCTULE_OK && memcmp(event.goal, id, 16) == 0);
        CHECK(bench->feedback.left.count == counts[at] && (counts[at] == 0 || bench->feedback.left.data[counts[at] - 1] == left[counts[at] - 1]));
        noctule_goal_message_release(event.message);
        typed_msgs_action_Reach_Result_init(&result);
        result.steps = (int32_t)counts[at];
        CHECK(arm_end_arm_reach(at_server, NOCTULE_GOAL_SUCCEEDED, &result, bench->scratch, sizeof bench->scratch) == NOCTULE_OK);
        CHECK(until(bench, NOCTULE_EVENT_RESULT, &event) == NOCTULE_OK && event.status == NOCTULE_GOAL_SUCCEEDED);
        CHECK(bench->result.steps == (int32_t)counts[at] && bench->result.why.length == 0);
        noctule_goal_message_release(event.message);
        noctule_goal_close(at_server);
    }
}

static void what_has_no_room_is_refused(bench_t *bench) {
    const double path[2] = {1, 2};
    const typed_msgs_action_Reach_Goal sent = value(path, 2, "arm");
    /* Header, number, count, padding, path, length, text and its NUL. */
    const uint32_t needed = 4 + 16 + 4 + 4 + 16 + 4 + 4;
    typed_msgs_action_Reach_Goal goal;
    noctule_goal_event_t event;
    uint32_t capacity;
    for (capacity = 0; capacity < needed; capacity++)
        CHECK(arm_send_arm_reach(bench->client, &sent, bench->scratch, capacity, NULL) == NOCTULE_ERROR_TOO_LONG);
    CHECK(arm_send_arm_reach(bench->client, &sent, bench->scratch, needed, NULL) == NOCTULE_OK);
    /* Nobody ends it: it is aborted, with the result that _init gives. */
    {
        noctule_goal_t *at_server = received(bench, &goal);
        CHECK(noctule_goal_accept(at_server, true) == NOCTULE_OK);
        noctule_goal_close(at_server);
    }
    CHECK(until(bench, NOCTULE_EVENT_RESULT, &event) == NOCTULE_OK && event.status == NOCTULE_GOAL_ABORTED && bench->result.steps == 3);
    noctule_goal_message_release(event.message);
}

/* Of a goal, each beginning of it and each length with a high bit set; the goal behind them arrives, in memory that none of them took. */
static void bytes_that_are_no_goal_are_rejected(bench_t *bench) {
    const double path[2] = {1, 2};
    const typed_msgs_action_Reach_Goal sent = value(path, 2, "arm");
    typed_msgs_action_Reach_Goal goal;
    noctule_goal_t *at_server;
    uint8_t whole[SCRATCH_BYTES];
    uint32_t length, at, hostile = 0;
    noctule_cdr_writer_t cdr = noctule_cdr_sample(whole, sizeof whole);
    memset(whole + 4, 0, 16);
    cdr.length += 16;
    typed_msgs_action_Reach_Goal_write(&cdr, &sent);
    length = noctule_cdr_sample_length(&cdr);
    CHECK(length == 52);
    for (at = 20; at < length - 4; at++, hostile++) CHECK(noctule_action_send(bench->client, whole, at, 0, NULL) == NOCTULE_OK);
    /* The last byte of each of the two lengths. */
    for (at = 23; at < 50; at += 24, hostile++) {
        whole[at] = 0x80;
        CHECK(noctule_action_send(bench->client, whole, length, 0, NULL) == NOCTULE_OK);
        whole[at] = 0;
    }
    whole[1] = 9;
    CHECK(noctule_action_send(bench->client, whole, length, 0, NULL) == NOCTULE_OK);
    CHECK(hostile == 30 && arm_send_arm_reach(bench->client, &sent, bench->scratch, sizeof bench->scratch, NULL) == NOCTULE_OK);
    at_server = received(bench, &goal);
    CHECK(goal.path.count == 2 && goal.path.data[1] == 2 && bench->memory.used <= sizeof path);
    CHECK(noctule_goal_reject(at_server) == NOCTULE_OK);
    noctule_goal_close(at_server);
}

/* A server that speaks no Reach: its feedback and its result are refused with the goal's number, and nothing is left to release. */
static void bytes_that_are_no_feedback_and_no_result_are_refused(bench_t *bench) {
    const typed_msgs_action_Reach_Goal sent = value(NULL, 0, "arm");
    const uint8_t feedback[24] = {0, 1, 0, 0, [20] = 0xFF, 0xFF, 0xFF, 0xFF}, result[12] = {0, 1, 0, 0, [8] = 0xFF, 0xFF, 0xFF, 0xFF};
    typed_msgs_action_Reach_Goal goal;
    noctule_goal_event_t event;
    noctule_goal_t *at_server;
    uint8_t id[16];
    CHECK(arm_send_arm_reach(bench->client, &sent, bench->scratch, sizeof bench->scratch, id) == NOCTULE_OK);
    at_server = received(bench, &goal);
    CHECK(noctule_goal_accept(at_server, true) == NOCTULE_OK);
    CHECK(noctule_goal_feedback(at_server, feedback, sizeof feedback) == NOCTULE_OK);
    CHECK(until(bench, NOCTULE_EVENT_FEEDBACK, &event) == NOCTULE_ERROR_BROKEN && event.message == NULL && memcmp(event.goal, id, 16) == 0);
    CHECK(noctule_goal_end(at_server, NOCTULE_GOAL_SUCCEEDED, result, sizeof result) == NOCTULE_OK);
    CHECK(until(bench, NOCTULE_EVENT_RESULT, &event) == NOCTULE_ERROR_BROKEN && event.message == NULL && memcmp(event.goal, id, 16) == 0);
    noctule_goal_close(at_server);
}

int main(int count, char **arguments) {
    noctule_node_options_t in = {.domain = count > 1 ? (uint32_t)atoi(arguments[1]) : 0};
    noctule_node_t *node = NULL;
    bench_t bench = {.client = NULL};
    bench.memory.bytes = (uint8_t *)bench.place;
    bench.memory.capacity = sizeof bench.place;
    CHECK(noctule_node_open("typed actions", &in, &node) == NOCTULE_OK);
    CHECK(arm_server_arm_reach(node, NULL, NULL, bench.scratch, 4, &bench.server) == NOCTULE_ERROR_TOO_LONG);
    CHECK(arm_server_arm_reach(node, NULL, NULL, bench.scratch, sizeof bench.scratch, &bench.server) == NOCTULE_OK);
    CHECK(arm_client_arm_reach(node, &bench.client) == NOCTULE_OK);
    CHECK(noctule_action_wait_for_server(bench.client, -1) == NOCTULE_OK);
    values_of_any_length_arrive(&bench);
    what_has_no_room_is_refused(&bench);
    bytes_that_are_no_goal_are_rejected(&bench);
    bytes_that_are_no_feedback_and_no_result_are_refused(&bench);
    noctule_action_server_close(bench.server);
    noctule_action_client_close(bench.client);
    noctule_node_close(node);
    if (failures == 0) printf("c typed actions: all tests passed\n");
    return failures != 0;
}
