/* Actions through the C header, in one process: a goal is accepted, gives feedback, is canceled, ends; and bad calls are refused with a
 * sentence. Takes the domain as its argument. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sends a goal of one number and gives it at its server. */
static noctule_goal_t *sent(noctule_action_client_t *client, noctule_action_server_t *server, uint8_t number, uint8_t id[16]) {
    uint8_t request[24] = {0, 1, 0, 0};
    noctule_goal_event_t event;
    noctule_goal_t *goal = NULL;
    noctule_sample_info_t info;
    request[20] = number;
    CHECK(noctule_action_send(client, request, sizeof request, 0, id) == NOCTULE_OK);
    /* The copies of the request go out meanwhile. */
    while (noctule_action_server_next(server, 5000000, &goal, &info) == NOCTULE_NOTHING) {
        CHECK(noctule_action_next(client, 5000000, &event) == NOCTULE_NOTHING);
    }
    uint8_t at_server[16];
    CHECK(noctule_goal_id(goal, at_server) == NOCTULE_OK && memcmp(at_server, id, 16) == 0);
    const uint8_t *bytes = info.bytes;
    CHECK(info.length_bytes == sizeof request && bytes[20] == number && memcmp(bytes + 4, id, 16) == 0 && info.age_ns > 0);
    return goal;
}

/* The next event of this kind; of others only those that may come before it. */
static noctule_goal_event_t until(noctule_action_client_t *client, int kind) {
    noctule_goal_event_t event;
    for (;;) {
        int status = noctule_action_next(client, -1, &event);
        if (event.kind == kind) return event;
        CHECK(status == NOCTULE_OK && (event.kind == NOCTULE_EVENT_STATUS || event.kind == NOCTULE_EVENT_ACCEPTED));
        noctule_goal_message_release(event.message);
        if (status != NOCTULE_OK) exit(1);
    }
}

static void a_goal_is_executed(noctule_action_client_t *client, noctule_action_server_t *server) {
    uint8_t id[16], feedback[24] = {0, 1, 0, 0}, response[12] = {0, 1, 0, 0};
    noctule_goal_t *goal = sent(client, server, 5, id);
    CHECK_FAILS(noctule_goal_feedback(goal, feedback, sizeof feedback), NOCTULE_ERROR_ARGUMENT, "not accepted");
    CHECK(noctule_goal_accept(goal, false) == NOCTULE_OK && noctule_goal_execute(goal) == NOCTULE_OK);
    CHECK_FAILS(noctule_goal_accept(goal, true), NOCTULE_ERROR_ARGUMENT, "before");
    CHECK(noctule_goal_wait_for_cancel(goal, 0) == NOCTULE_NOTHING);
    noctule_goal_event_t event = until(client, NOCTULE_EVENT_ACCEPTED);
    CHECK(memcmp(event.goal, id, 16) == 0 && event.stamp_ns > 0);
    feedback[20] = 7;
    CHECK(noctule_goal_feedback(goal, feedback, sizeof feedback) == NOCTULE_OK);
    event = until(client, NOCTULE_EVENT_FEEDBACK);
    const uint8_t *bytes = event.info.bytes;
    CHECK(event.info.length_bytes == sizeof feedback && bytes[20] == 7 && memcmp(bytes + 4, id, 16) == 0 && event.info.age_ns > 0);
    noctule_goal_message_release(event.message);
    CHECK_FAILS(noctule_goal_end(goal, NOCTULE_GOAL_CANCELED, response, sizeof response), NOCTULE_ERROR_ARGUMENT, "cannot become canceled");
    CHECK_FAILS(noctule_goal_end(goal, 9, response, sizeof response), NOCTULE_ERROR_ARGUMENT, "status is 9");
    CHECK_FAILS(noctule_goal_end(goal, NOCTULE_GOAL_ABORTED, response, 2), NOCTULE_ERROR_ARGUMENT, "2 bytes are no response");
    CHECK(noctule_goal_end(goal, NOCTULE_GOAL_SUCCEEDED, response, sizeof response) == NOCTULE_OK);
    event = until(client, NOCTULE_EVENT_RESULT);
    bytes = event.info.bytes;
    CHECK(event.status == NOCTULE_GOAL_SUCCEEDED && event.info.length_bytes == sizeof response && bytes[4] == 4);
    noctule_goal_message_release(event.message);
    noctule_goal_close(goal);
}

static void a_goal_is_canceled_rejected_and_dropped(noctule_action_client_t *client, noctule_action_server_t *server) {
    uint8_t id[16], response[12] = {0, 1, 0, 0};
    noctule_goal_t *goal = sent(client, server, 1, id);
    CHECK(noctule_goal_accept(goal, true) == NOCTULE_OK);
    CHECK(noctule_action_cancel(client, id, 0) == NOCTULE_OK);
    CHECK(until(client, NOCTULE_EVENT_CANCEL).status == 0);
    CHECK(noctule_goal_wait_for_cancel(goal, -1) == NOCTULE_OK);
    CHECK(noctule_goal_end(goal, NOCTULE_GOAL_CANCELED, response, sizeof response) == NOCTULE_OK);
    noctule_goal_event_t event = until(client, NOCTULE_EVENT_RESULT);
    CHECK(event.status == NOCTULE_GOAL_CANCELED);
    noctule_goal_message_release(event.message);
    noctule_goal_close(goal);
    CHECK(noctule_action_cancel(client, id, 0) == NOCTULE_OK && until(client, NOCTULE_EVENT_CANCEL).status == 3);
    goal = sent(client, server, 2, id);
    CHECK(noctule_goal_reject(goal) == NOCTULE_OK);
    CHECK(memcmp(until(client, NOCTULE_EVENT_FAILED).goal, id, 16) == 0 && strstr(noctule_last_error(), "rejected goal") != NULL);
    noctule_goal_close(goal);
    goal = sent(client, server, 3, id);
    CHECK(noctule_goal_accept(goal, true) == NOCTULE_OK);
    noctule_goal_close(goal);
    event = until(client, NOCTULE_EVENT_RESULT);
    CHECK(event.status == NOCTULE_GOAL_ABORTED && event.info.length_bytes == 8);
    noctule_goal_message_release(event.message);
}

int main(int count, char **arguments) {
    noctule_node_options_t in = {.domain = count > 1 ? (uint32_t)atoi(arguments[1]) : 0};
    noctule_node_t *node = NULL;
    noctule_action_client_t *client = NULL;
    noctule_action_server_t *server = NULL;
    const uint8_t empty[8] = {0, 1, 0, 0};
    noctule_action_options_t options = {.type_name = "demo/action/Count", .deadline_ns = 60000000000, .empty_result = empty,
                                        .empty_result_bytes = sizeof empty};
    CHECK(noctule_node_open("actions", &in, &node) == NOCTULE_OK);
    CHECK_FAILS(noctule_action_client_open(node, "/count", NULL, &client), NOCTULE_ERROR_ARGUMENT, "options is NULL");
    CHECK(noctule_action_client_open(node, "/count", &options, &client) == NOCTULE_OK);
    CHECK(noctule_action_server_open(node, "/count", &options, &server) == NOCTULE_OK);
    CHECK(noctule_action_wait_for_server(client, -1) == NOCTULE_OK);
    CHECK_FAILS(noctule_action_send(client, empty, sizeof empty, 0, NULL), NOCTULE_ERROR_ARGUMENT, "8 bytes are no request");
    a_goal_is_executed(client, server);
    a_goal_is_canceled_rejected_and_dropped(client, server);
    noctule_goal_event_t event;
    CHECK(noctule_action_next(client, -1, &event) == NOCTULE_NOTHING && event.kind == 0);
    noctule_action_server_close(server);
    noctule_action_client_close(client);
    noctule_node_close(node);
    if (failures == 0) printf("c actions: all tests passed\n");
    return failures != 0;
}
