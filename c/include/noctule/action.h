/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Actions: goals that take time, with feedback, a result and cancellation, as ROS 2 has them. Included by noctule.h. What it is all about:
 * docs/guide/actions.md. */
#ifndef NOCTULE_ACTION_H
#define NOCTULE_ACTION_H

#include <noctule/noctule.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct noctule_action_client noctule_action_client_t;
typedef struct noctule_action_server noctule_action_server_t;
typedef struct noctule_goal noctule_goal_t;
typedef struct noctule_goal_message noctule_goal_message_t;

/* Messages are bytes of CDR, those of
 * the types that ROS 2 derives of a .action. Where the goal's number stands in them (bytes 4 to 19) or its status (byte 4), the library writes it. */

/* Where a goal is. */
enum {
    NOCTULE_GOAL_UNKNOWN = 0,
    NOCTULE_GOAL_ACCEPTED = 1,
    NOCTULE_GOAL_EXECUTING = 2,
    NOCTULE_GOAL_CANCELING = 3,
    NOCTULE_GOAL_SUCCEEDED = 4,
    NOCTULE_GOAL_CANCELED = 5,
    NOCTULE_GOAL_ABORTED = 6
};

/* Event in the life of a goal. */
enum {
    NOCTULE_EVENT_ACCEPTED = 1, /* stamp_ns: when, by the server's time of day. */
    NOCTULE_EVENT_STATUS = 2,   /* status: executing, or canceling. */
    NOCTULE_EVENT_FEEDBACK = 3, /* info.bytes: a ..._FeedbackMessage. */
    NOCTULE_EVENT_RESULT = 4,   /* status; info.bytes: a ..._GetResult_Response. The last event of a goal. */
    NOCTULE_EVENT_FAILED = 5,   /* The error says why. The last event of a goal. */
    NOCTULE_EVENT_CANCEL = 6    /* status: 0 it is being canceled, 1 refused, 2 not known, 3 at its end; or an error. */
};

/* 0: the goal is canceled; else it goes on. On a thread of the server; it may look at goals, but neither accept nor reject one. */
typedef int (*noctule_cancel_callback_t)(void *context, const uint8_t goal[16]);

/* Zero (or NULL) in a field but type_name means its default. */
typedef struct {
    const char *type_name; /* "package/action/Name" */
    uint64_t send_goal_request_hash; /* Those of the derived types; 0: any definition. */
    uint64_t send_goal_response_hash;
    uint64_t get_result_request_hash;
    uint64_t get_result_response_hash;
    uint64_t feedback_hash;
    uint32_t payload_bytes_max; /* Longest goal of a client, longest result and feedback of a server. Default 65536. */
    int64_t deadline_ns;        /* Of a client: how long a goal waits to be accepted. Default 5 s. */
    int64_t result_deadline_ns; /* Of a client: how long an accepted goal may take. Default 24 h. */
    int64_t keep_results_ns;    /* Of a server: from the end of a goal. Default 10 s. */
    const void *empty_result;   /* Of a server: a ..._GetResult_Response for goals without a result. Default: such requests fail. */
    size_t empty_result_bytes;
    noctule_cancel_callback_t on_cancel; /* Of a server. Default: every goal can be canceled. */
    void *context;                       /* Usable from any thread until the server is closed. */
} noctule_action_options_t;

typedef struct {
    int kind;         /* NOCTULE_EVENT_..., 0: none. */
    uint8_t goal[16]; /* Which; all zero: all goals, or those up to a time. */
    int status;
    int64_t stamp_ns;
    noctule_goal_message_t *message; /* Not NULL: to be released, and info holds. */
    noctule_sample_info_t info;
} noctule_goal_event_t;

/* Opens a client of an action. One thread at a time uses it. Errors: ARGUMENT, SYSTEM. */
int noctule_action_client_open(const noctule_node_t *node, const char *action, const noctule_action_options_t *options,
                               noctule_action_client_t **client);

/* Sends a goal, a ..._SendGoal_Request; if its number is zero, one by chance is taken. Its result may take up to result_deadline_ns from its acceptance (0: the
 * client's). goal, if not NULL: its number. Errors: ARGUMENT (no such message, a number that is followed), SYSTEM (256 goals are followed), TOO_LONG. */
int noctule_action_send(noctule_action_client_t *client, const void *bytes, size_t length_bytes, int64_t result_deadline_ns,
                        uint8_t goal[16]);

/* Waits up to timeout_ns, or for ever if it is negative, for what becomes of any goal. NOCTULE_NOTHING when the time is over or no goal is followed.
 * Errors: NO_REPLY and others of the goal event->goal if event->kind is not 0; ARGUMENT, BROKEN. */
int noctule_action_next(noctule_action_client_t *client, int64_t timeout_ns, noctule_goal_event_t *event);

/* Requests the cancellation of a goal of any client (NULL: all goals) and all that were accepted at up_to_ns or before (0: no others); the answer is an event.
 * Errors: ARGUMENT, SYSTEM. */
int noctule_action_cancel(noctule_action_client_t *client, const uint8_t goal[16], int64_t up_to_ns);

/* Waits up to timeout_ns, or for ever if it is negative, until there is a server. NOCTULE_NOTHING when the time is over. Errors: ARGUMENT, BROKEN. */
int noctule_action_wait_for_server(noctule_action_client_t *client, int64_t timeout_ns);

/* NULL is allowed. */
void noctule_goal_message_release(noctule_goal_message_t *message);

/* Its goals go on at their server. NULL is allowed. */
void noctule_action_client_close(noctule_action_client_t *client);

/* Opens a server of an action; a thread of its own answers cancellations and requests for results. Errors: ARGUMENT, SYSTEM. */
int noctule_action_server_open(const noctule_node_t *node, const char *action, const noctule_action_options_t *options,
                               noctule_action_server_t **server);

/* Waits up to timeout_ns, or for ever if it is negative, for a goal: info->bytes until noctule_goal_close, a ..._SendGoal_Request. Any thread may.
 * NOCTULE_NOTHING when the time is over. Errors: ARGUMENT. */
int noctule_action_server_next(const noctule_action_server_t *server, int64_t timeout_ns, noctule_goal_t **goal,
                               noctule_sample_info_t *info);

/* Accepts a goal; execute false: to be executed later. One thread at a time uses a goal. Errors: ARGUMENT, NO_REPLY (its client waits no longer; it is
 * as if it had never come). */
int noctule_goal_accept(noctule_goal_t *goal, bool execute);

/* Rejects a goal. Errors: as noctule_goal_accept. */
int noctule_goal_reject(noctule_goal_t *goal);

/* Executes a goal that was accepted for later. Errors: ARGUMENT. */
int noctule_goal_execute(noctule_goal_t *goal);

/* Its number. Errors: ARGUMENT. */
int noctule_goal_id(const noctule_goal_t *goal, uint8_t id[16]);

/* Waits up to timeout_ns, or for ever if it is negative, until it is to be canceled. NOCTULE_NOTHING when the time is over. Errors: ARGUMENT. */
int noctule_goal_wait_for_cancel(noctule_goal_t *goal, int64_t timeout_ns);

/* Publishes feedback, a ..._FeedbackMessage. Errors: ARGUMENT, TOO_LONG. */
int noctule_goal_feedback(noctule_goal_t *goal, const void *bytes, size_t length_bytes);

/* Ends it: NOCTULE_GOAL_SUCCEEDED, _ABORTED or, if it is to be canceled, _CANCELED, with a ..._GetResult_Response. Errors: ARGUMENT, TOO_LONG; then it
 * goes on. */
int noctule_goal_end(noctule_goal_t *goal, int status, const void *bytes, size_t length_bytes);

/* Rejects it if it was not accepted, aborts it if it was not ended. NULL is allowed. */
void noctule_goal_close(noctule_goal_t *goal);

/* Goals under way end with it: their clients see that the server has gone. NULL is allowed. */
void noctule_action_server_close(noctule_action_server_t *server);

#ifdef __cplusplus
}
#endif
#endif
