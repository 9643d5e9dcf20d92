/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "board.h"

#include <string.h>

#include "../ports/task_statistics.h"

#define SECOND_NS INT64_C(1000000000)
#define UINT32_TYPE "std_msgs::msg::dds_::UInt32_"

enum { UP, UP_FAST, PONG, TASKS, DOWN, DOWN_FAST, PING };

/* Histories: what comes in one go when a line that was cut for a moment is there again. */
static const noctule_endpoint_t endpoints[] = {
    {"rt/board/up", UINT32_TYPE, NOCTULE_PUBLISH | NOCTULE_RELIABLE, 64},
    {"rt/board/up_fast", UINT32_TYPE, NOCTULE_PUBLISH | NOCTULE_STAMPED, 0},
    {"rt/board/pong", "std_msgs::msg::dds_::UInt8MultiArray_", NOCTULE_PUBLISH, 0},
    {"rt/board/tasks", noctule_msgs_TaskStatistics_DDS_TYPE_NAME, NOCTULE_PUBLISH, 0},
    {"rt/board/down", UINT32_TYPE, NOCTULE_SUBSCRIBE | NOCTULE_RELIABLE, 32},
    {"rt/board/down_fast", UINT32_TYPE, NOCTULE_SUBSCRIBE, 0},
    {"rt/board/ping", "std_msgs::msg::dds_::UInt8MultiArray_", NOCTULE_SUBSCRIBE, 0},
};

static void count(board_stream_t *stream, const uint8_t *bytes, uint32_t length) {
    noctule_cdr_reader_t cdr = noctule_cdr_reader(bytes, length);
    const uint32_t number = noctule_cdr_take_u32(&cdr);
    if (cdr.failed) return;
    /* Numbers that begin anew are those of a publisher that was started again. */
    if (stream->received > 0 && number > stream->next) stream->missing += number - stream->next;
    stream->next = number + 1;
    stream->received++;
}

static void on_sample(void *context, uint16_t endpoint, const uint8_t *bytes, uint32_t length, int64_t arrived_ns) {
    board_t *self = context;
    if (endpoint == DOWN) count(&self->down, bytes, length);
    if (endpoint == DOWN_FAST) count(&self->down_fast, bytes, length);
    if (endpoint == PING && noctule_client_publish(&self->client, PONG, bytes, length, arrived_ns) == NOCTULE_CLIENT_OK)
        self->pings++;
}

static void on_exchange(void *context, const noctule_exchange_t *exchange) {
    board_t *self = context;
    self->exchange = *exchange;
}

noctule_client_error_t board_init(board_t *self, noctule_line_t line, uint32_t key, uint32_t rate_hz) {
    noctule_client_config_t config;
    memset(&config, 0, sizeof config);
    memset(self, 0, sizeof *self);
    config.key = key;
    config.line = line;
    config.participant = "board";
    config.endpoints = endpoints;
    config.endpoint_count = sizeof endpoints / sizeof *endpoints;
    config.message_bytes = BOARD_MESSAGE_BYTES;
    config.slots_out = BOARD_SLOTS_OUT;
    config.slots_in = BOARD_SLOTS_IN;
    config.memory = self->memory;
    config.memory_bytes = sizeof self->memory;
    config.sync_interval_ns = SECOND_NS / 10;
    config.context = self;
    config.on_sample = on_sample;
    config.on_exchange = on_exchange;
    self->period_ns = rate_hz > 0 ? SECOND_NS / rate_hz : 0;
    return noctule_client_init(&self->client, &config);
}

/* A number goes to the next sample if it was not taken: what is missing at the other end was lost on the way. */
static void publish_number(board_t *self, uint16_t endpoint, uint32_t *number, int64_t now_ns) {
    uint8_t bytes[4];
    noctule_cdr_writer_t cdr = noctule_cdr_writer(bytes, sizeof bytes);
    noctule_cdr_put_u32(&cdr, *number);
    if (noctule_client_publish(&self->client, endpoint, bytes, cdr.length, now_ns) == NOCTULE_CLIENT_OK) ++*number;
}

bool board_step(board_t *self, int64_t now_ns) {
    if (self->publish_ns == 0) {
        self->publish_ns = now_ns;
        self->report_ns = now_ns + SECOND_NS;
    }
    if (self->period_ns > 0 && now_ns >= self->publish_ns) {
        publish_number(self, UP, &self->up, now_ns);
        publish_number(self, UP_FAST, &self->up_fast, now_ns);
        self->publish_ns += self->period_ns;
        /* After a pause the rhythm begins anew instead of catching up. */
        if (self->publish_ns <= now_ns) self->publish_ns = now_ns + self->period_ns;
    }
    if (now_ns < self->report_ns) return false;
    self->report_ns += SECOND_NS;
    if (self->report_ns <= now_ns) self->report_ns = now_ns + SECOND_NS;
    return true;
}

void board_report(board_t *self, int64_t now_ns, float idle_share, uint32_t stack_unused_bytes) {
    uint8_t bytes[128];
    noctule_cdr_writer_t cdr = noctule_cdr_writer(bytes, sizeof bytes);
    const noctule_msgs_TaskStatus task = {{"main", 4}, 1.0F - idle_share, stack_unused_bytes};
    const noctule_msgs_TaskStatistics report =
        noctule_task_statistics(now_ns, idle_share, noctule_client_counts(&self->client), &task, 1);
    noctule_msgs_TaskStatistics_write(&cdr, &report);
    if (cdr.failed) return;
    if (noctule_client_publish(&self->client, TASKS, bytes, cdr.length, now_ns) == NOCTULE_CLIENT_OK) self->reports++;
}

int64_t board_next_timeout(const board_t *self) {
    return self->period_ns > 0 && self->publish_ns < self->report_ns ? self->publish_ns : self->report_ns;
}

void board_end(board_t *self, int64_t now_ns) {
    self->period_ns = 0;
    if (self->end_ns == 0) self->end_ns = now_ns + SECOND_NS;
    if (noctule_client_unacknowledged(&self->client) == 0 || now_ns >= self->end_ns)
        noctule_client_close(&self->client, now_ns);
}

/* Without printf: on a board that would be more code than the client. */
static char *describe(char *text, const char *name, uint32_t number) {
    char digits[10];
    int count = 0;
    if (number == 0) digits[count++] = '0';
    for (; number > 0; number /= 10) digits[count++] = (char)('0' + number % 10);
    *text++ = '"';
    while (*name != 0) *text++ = *name++;
    *text++ = '"';
    *text++ = ':';
    while (count > 0) *text++ = digits[--count];
    *text++ = ',';
    return text;
}

void board_describe(const board_t *self, char text[BOARD_DESCRIPTION_BYTES]) {
    const noctule_client_counts_t *c = noctule_client_counts(&self->client);
    const struct {
        const char *name;
        uint32_t number;
    } counts[] = {
        {"up", self->up}, {"up_fast", self->up_fast}, {"pings", self->pings}, {"reports", self->reports},
        {"down", self->down.received}, {"down_missing", self->down.missing}, {"down_next", self->down.next},
        {"down_fast", self->down_fast.received}, {"down_fast_missing", self->down_fast.missing},
        {"down_fast_next", self->down_fast.next}, {"published", c->published}, {"acknowledged", c->acknowledged},
        {"abandoned", c->abandoned}, {"refused", c->refused_samples}, {"received", c->received},
        {"lost_messages", c->lost_messages}, {"resent", c->resent_messages}, {"frame_errors", c->frame_errors},
        {"malformed", c->malformed}, {"sessions", c->sessions}, {"exchanges", c->exchanges},
        {"bytes_in", c->bytes_in}, {"bytes_out", c->bytes_out},
    };
    size_t i;
    for (i = 0; i < sizeof counts / sizeof *counts; i++) text = describe(text, counts[i].name, counts[i].number);
    text[-1] = 0;
}
