/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The application of the examples, the same on a host and on a board: it publishes a counter at a fixed rate, reliable and
 * best effort, sends back every ping at once, takes a counter in, and reports on itself once a second. Each number that is
 * missing at the end shows in the counts on both sides.
 *
 *   publishes   rt/board/up         std_msgs/UInt32   reliable
 *               rt/board/up_fast    std_msgs/UInt32   best effort, stamped
 *               rt/board/pong       the bytes of ping, best effort
 *               rt/board/tasks      noctule_msgs/TaskStatistics
 *   subscribes  rt/board/down       std_msgs/UInt32   reliable
 *               rt/board/down_fast  std_msgs/UInt32   best effort
 *               rt/board/ping       any bytes, best effort
 */
#ifndef NOCTULE_EXAMPLE_BOARD_H
#define NOCTULE_EXAMPLE_BOARD_H

#include "../noctule_client.h"

enum {
    BOARD_MESSAGE_BYTES = 256,
    BOARD_SLOTS_OUT = 8,
    BOARD_SLOTS_IN = 4,
    BOARD_MEMORY_BYTES = NOCTULE_CLIENT_MEMORY_BYTES(BOARD_MESSAGE_BYTES, BOARD_SLOTS_OUT, BOARD_SLOTS_IN, 0),
    BOARD_DESCRIPTION_BYTES = 1024,
    BOARD_TRANSMIT_BYTES = NOCTULE_CLIENT_TRANSMIT_BYTES(BOARD_MESSAGE_BYTES)
};

/* A numbered stream that arrives: numbers only rise. */
typedef struct {
    uint32_t received, missing, next;
} board_stream_t;

typedef struct {
    noctule_client_t client;
    uint8_t memory[BOARD_MEMORY_BYTES];
    uint8_t transmit[BOARD_TRANSMIT_BYTES];
    int64_t period_ns, publish_ns, report_ns, end_ns;
    uint32_t up, up_fast, pings, reports;
    board_stream_t down, down_fast;
    noctule_exchange_t exchange; /* the last */
} board_t;

/* `rate_hz` of the counters; 0 for none. `line` and `key` as in the client's configuration. */
noctule_client_error_t board_init(board_t *self, noctule_line_t line, uint32_t key, uint32_t rate_hz);

/* Publishes what is due. True if a report on itself is due: then call board_report. */
bool board_step(board_t *self, int64_t now_ns);

/* Publishes a report. */
void board_report(board_t *self, int64_t now_ns, float idle_share, uint32_t stack_unused_bytes);

/* Stops publishing, and takes leave as soon as the agent has all reliable samples, or after a second. To be called again
 * and again until the client is NOCTULE_CLOSED. */
void board_end(board_t *self, int64_t now_ns);

/* Writes all counts as the members of a JSON object, without its braces. */
void board_describe(const board_t *self, char text[BOARD_DESCRIPTION_BYTES]);

/* When to call board_step next. */
int64_t board_next_timeout(const board_t *self);

#endif
