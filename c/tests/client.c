/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The microcontroller client against literal bytes, full queues, wrong configurations and hostile agents.
 * Literal bytes are those captured from stock clients and agents. Argument: a seed for the hostile bytes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../noctule_client.h"

#define CHECK(what)                                                        \
    do {                                                                   \
        if (!(what)) {                                                     \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

enum { MESSAGE = 508, OUT = 4, IN = 4, LARGE = 2000 };
#define MS INT64_C(1000000)

typedef struct {
    uint32_t samples, length;
    uint16_t endpoint;
    uint8_t bytes[LARGE];
    noctule_exchange_t exchange;
    uint32_t exchanges;
} seen_t;

typedef struct {
    noctule_client_t client;
    noctule_client_config_t config;
    seen_t seen;
    uint8_t memory[NOCTULE_CLIENT_MEMORY_BYTES(MESSAGE, OUT, IN, LARGE)];
    uint8_t out[NOCTULE_CLIENT_TRANSMIT_BYTES(MESSAGE)];
} bench_t;

static const noctule_endpoint_t endpoints[] = {
    {"HelloWorldTopic", "HelloWorld", NOCTULE_PUBLISH | NOCTULE_RELIABLE | NOCTULE_TRANSIENT_LOCAL, 0},
    {"rt/b", "B", NOCTULE_SUBSCRIBE | NOCTULE_RELIABLE, 5},
    {"rt/c", "C", NOCTULE_PUBLISH | NOCTULE_STAMPED, 0},
    {"rt/d", "D", NOCTULE_SUBSCRIBE, 0},
};

static void on_sample(void *context, uint16_t endpoint, const uint8_t *bytes, uint32_t length, int64_t arrived_ns) {
    seen_t *seen = context;
    CHECK(length <= LARGE && arrived_ns >= 0);
    seen->samples++;
    seen->endpoint = endpoint;
    seen->length = length;
    memcpy(seen->bytes, bytes, length);
}

static void on_exchange(void *context, const noctule_exchange_t *exchange) {
    seen_t *seen = context;
    seen->exchange = *exchange;
    seen->exchanges++;
}

static bench_t *bench(void) {
    bench_t *self = calloc(1, sizeof *self);
    CHECK(self != NULL);
    self->config.key = 0xAAAABBBB;
    self->config.line = NOCTULE_DATAGRAM;
    self->config.endpoints = endpoints;
    self->config.endpoint_count = 4;
    self->config.message_bytes = MESSAGE;
    self->config.slots_out = OUT;
    self->config.slots_in = IN;
    self->config.large_bytes = LARGE;
    self->config.memory = self->memory;
    self->config.memory_bytes = sizeof self->memory;
    self->config.context = &self->seen;
    self->config.on_sample = on_sample;
    self->config.on_exchange = on_exchange;
    return self;
}

static void start(bench_t *self) { CHECK(noctule_client_init(&self->client, &self->config) == NOCTULE_CLIENT_OK); }

/* "80 00 | 01" -> bytes. */
static size_t parse(const char *text, uint8_t *bytes) {
    size_t n = 0;
    while (*text != 0) {
        char digits[3] = {text[0], text[1], 0};
        if (*text == ' ' || *text == '|') {
            text++;
            continue;
        }
        bytes[n++] = (uint8_t)strtoul(digits, NULL, 16);
        text += 2;
    }
    return n;
}

static void expect(bench_t *self, int64_t now_ns, const char *text) {
    uint8_t bytes[MESSAGE * 2];
    const size_t length = parse(text, bytes);
    const int32_t got = noctule_client_poll_transmit(&self->client, now_ns, self->out, sizeof self->out);
    int32_t i;
    if (got == (int32_t)length && memcmp(bytes, self->out, length) == 0) return;
    fprintf(stderr, "expected %s\n     got", text);
    for (i = 0; i < got; i++) fprintf(stderr, " %02x", self->out[i]);
    fprintf(stderr, "\n");
    exit(1);
}

static void give(bench_t *self, int64_t now_ns, const char *text) {
    uint8_t bytes[MESSAGE * 2];
    noctule_client_handle_datagram(&self->client, bytes, parse(text, bytes), now_ns);
}

/* From the start to a session in which all endpoints are answered for. */
static void connect(bench_t *self, bool noctule) {
    uint16_t step;
    start(self);
    expect(self, 0, "80 00 00 00 | 00 01 10 00 | 58 52 43 45 01 00 4E 43 AA AA BB BB 81 00 FC 01");
    give(self, 0, noctule ? "81 00 00 00 | 04 01 0B 00 | 00 00 | 58 52 43 45 01 00 4E 43 00"
                          : "81 00 00 00 | 04 01 0B 00 | 00 00 | 58 52 43 45 01 00 01 0F 00");
    CHECK(noctule_client_state(&self->client) == NOCTULE_CREATING);
    while (noctule_client_poll_transmit(&self->client, 0, self->out, sizeof self->out) > 0) {}
    CHECK(noctule_client_poll_transmit(&self->client, 0, self->out, sizeof self->out) == 0);
    for (step = 0; step < 3 + 2 * 4; step++) {
        char status[100];
        sprintf(status, "81 80 %02X 00 | 05 01 06 00 | 00 %02X 00 11 | 00 00", step, 10 + step);
        give(self, 0, status);
    }
    give(self, 0, "81 00 00 00 | 0A 01 05 00 01 00 00 00 80");
    expect(self, 0, "81 00 00 00 | 0A 01 05 00 | 0B 00 00 00 80");
    CHECK(noctule_client_state(&self->client) == NOCTULE_READY && noctule_client_unacknowledged(&self->client) == 0);
    CHECK(noctule_client_agent_is_noctule(&self->client) == noctule);
}

/* Not of a stock client: vendor NC, objects of ours, and all that fits in one message. */
static void objects_are_created_in_binary_and_readers_read(void) {
    bench_t *self = bench();
    start(self);
    CHECK(noctule_client_poll_transmit(&self->client, 0, self->out, sizeof self->out) == 24);
    give(self, 0, "81 00 00 00 | 04 01 0B 00 | 00 00 | 58 52 43 45 01 00 01 0F 00");
    expect(self, 0,
           "81 80 00 00"
           "| 01 07 10 00 | 00 0A 00 11 01 03 00 00 02 00 00 00 00 00 | 00 00"
           "| 01 07 10 00 | 00 0B 00 13 03 03 00 00 02 00 00 00 00 00 | 00 11"
           "| 01 07 10 00 | 00 0C 00 14 04 03 00 00 02 00 00 00 00 00 | 00 11"
           "| 01 07 35 00 | 00 0D 00 12 02 03 00 00 27 00 00 00"
           "| 10 00 00 00 48 65 6C 6C 6F 57 6F 72 6C 64 54 6F 70 69 63 00 00 01 00 00"
           "| 0B 00 00 00 48 65 6C 6C 6F 57 6F 72 6C 64 00 | 00 11 00 00 00"
           "| 01 07 19 00 | 00 0E 00 15 05 03 00 00 0B 00 00 00 | 00 12 01 00 0B 00 00 00 00 00 00 | 00 13 00 00 00"
           "| 01 07 20 00 | 00 0F 00 22 02 03 00 00 12 00 00 00"
           "| 05 00 00 00 72 74 2F 62 00 00 01 00 02 00 00 00 42 00 | 00 11"
           "| 01 07 1D 00 | 00 10 00 26 06 03 00 00 0F 00 00 00 | 00 22 01 00 03 00 01 00 05 00 00 00 00 00 00 | 00 14 00 00 00"
           "| 08 01 10 00 | 80 02 00 26 | 80 00 00 01 FF FF 00 00 00 00 00 00"
           "| 01 07 20 00 | 00 11 00 32 02 03 00 00 12 00 00 00"
           "| 05 00 00 00 72 74 2F 63 00 00 01 00 02 00 00 00 43 00 | 00 11"
           "| 01 07 19 00 | 00 12 00 35 05 03 00 00 0B 00 00 00 | 00 32 01 00 02 00 00 00 00 00 00 | 00 13 00 00 00"
           "| 01 07 20 00 | 00 13 00 42 02 03 00 00 12 00 00 00"
           "| 05 00 00 00 72 74 2F 64 00 00 01 00 02 00 00 00 44 00 | 00 11"
           "| 01 07 1A 00 | 00 14 00 46 06 03 00 00 0C 00 00 00 | 00 42 01 00 02 00 00 00 00 00 00 00 | 00 14 00 00"
           "| 08 01 10 00 | 80 04 00 46 | 01 00 00 01 FF FF 00 00 00 00 00 00");
    free(self);
}

static void samples_travel_both_ways_in_the_captured_form(void) {
    bench_t *self = bench();
    static const uint8_t hello[] = {1, 0, 0, 0, 13, 0, 0, 0, 'H', 'e', 'l', 'l', 'o', ' ', 'w', 'o', 'r', 'l', 'd', '!', 0};
    connect(self, false);
    CHECK(noctule_client_publish(&self->client, 0, hello, 21, 0) == NOCTULE_CLIENT_OK);
    expect(self, 0, "81 80 01 00 | 07 01 19 00 | 40 00 00 15 | 01 00 00 00 0D 00 00 00 48 65 6C 6C 6F 20 77 6F 72 6C 64 21 00");
    give(self, 0, "81 00 00 00 | 0A 01 05 00 | 02 00 00 00 80");
    CHECK(noctule_client_counts(&self->client)->acknowledged == 1);
    give(self, 0, "81 80 0B 00 | 09 01 19 00 | 80 02 00 26 | 01 00 00 00 0D 00 00 00 48 65 6C 6C 6F 20 77 6F 72 6C 64 21 00");
    CHECK(self->seen.samples == 1 && self->seen.endpoint == 1 && self->seen.length == 21);
    CHECK(memcmp(self->seen.bytes, hello, 21) == 0);
    expect(self, 0, "81 00 00 00 | 0A 01 05 00 | 0C 00 00 00 80");
    /* Best effort: two samples of one poll share a message, a stock agent gets no stamp. */
    CHECK(noctule_client_publish(&self->client, 2, hello, 2, 0) == NOCTULE_CLIENT_OK);
    CHECK(noctule_client_publish(&self->client, 2, hello + 4, 1, 0) == NOCTULE_CLIENT_OK);
    expect(self, 0, "81 01 00 00 | 07 01 06 00 40 02 00 35 01 00 00 00 | 07 01 05 00 40 02 00 35 0D");
    give(self, 0, "81 01 03 00 | 09 01 05 00 80 04 00 46 55");
    CHECK(self->seen.samples == 2 && self->seen.endpoint == 3 && self->seen.bytes[0] == 0x55);
    CHECK(noctule_client_counts(&self->client)->lost_messages == 3);
    give(self, 0, "81 01 03 00 | 09 01 05 00 80 04 00 46 55");
    CHECK(self->seen.samples == 2 && noctule_client_counts(&self->client)->repeated_messages == 1);
    free(self);
}

static void a_stamp_goes_before_its_sample_to_noctule_only(void) {
    bench_t *self = bench();
    connect(self, true);
    CHECK(noctule_client_publish(&self->client, 2, (const uint8_t *)"a", 1, INT64_C(5000000007)) == NOCTULE_CLIENT_OK);
    expect(self, 0, "81 01 00 00 | C0 01 08 00 05 00 00 00 07 00 00 00 | 07 01 05 00 40 02 00 35 61");
    free(self);
}

static void pings_and_leave_are_those_of_stock_clients(void) {
    bench_t *self = bench();
    connect(self, false);
    expect(self, 299 * MS, "");
    expect(self, 300 * MS, "81 00 00 00 02 01 08 00 00 0A FF FD 02 00 00 00");
    expect(self, 300 * MS, "");
    give(self, 310 * MS, "81 00 00 00 | 06 01 1C 00 00 0A FF FD 00 01 01 0D 58 52 43 45 01 00 01 0F 00 01 0D 00 01 00 00 00 00 00 00 00");
    CHECK(noctule_client_state(&self->client) == NOCTULE_READY);
    expect(self, 609 * MS, "");
    /* An agent that was restarted knows of no session: the client begins one at once. */
    expect(self, 610 * MS, "81 00 00 00 02 01 08 00 00 0A FF FD 02 00 00 00");
    give(self, 611 * MS, "81 00 00 00 | 06 01 1C 00 00 0A FF FD 00 00 01 0D 58 52 43 45 01 00 01 0F 00 01 0D 00 01 00 00 00 00 00 00 00");
    CHECK(noctule_client_next_timeout(&self->client, 611 * MS) == 611 * MS);
    expect(self, 611 * MS, "80 00 00 00 | 00 01 10 00 | 58 52 43 45 01 00 4E 43 AA AA BB BB 81 00 FC 01");
    CHECK(noctule_client_state(&self->client) == NOCTULE_CONNECTING);
    give(self, 612 * MS, "81 00 00 00 | 04 01 0B 00 | 00 00 | 58 52 43 45 01 00 01 0F 00");
    noctule_client_close(&self->client, 613 * MS);
    expect(self, 613 * MS, "81 00 00 00 03 01 04 00 00 02 FF FE");
    give(self, 614 * MS, "81 00 00 00 | 05 01 06 00 | 00 02 FF FE | 00 00");
    CHECK(noctule_client_state(&self->client) == NOCTULE_CLOSED);
    CHECK(noctule_client_next_timeout(&self->client, 614 * MS) == INT64_MAX);
    free(self);
}

static void a_lost_agent_is_looked_for_after_the_silence(void) {
    bench_t *self = bench();
    int64_t now = 0;
    int polls = 0;
    connect(self, false);
    CHECK(noctule_client_publish(&self->client, 0, (const uint8_t *)"abc", 3, 0) == NOCTULE_CLIENT_OK);
    while (noctule_client_state(&self->client) == NOCTULE_READY && polls++ < 100) {
        while (noctule_client_poll_transmit(&self->client, now, self->out, sizeof self->out) > 0) {}
        CHECK(noctule_client_next_timeout(&self->client, now) > now);
        now = noctule_client_next_timeout(&self->client, now);
    }
    CHECK(now <= NOCTULE_CLIENT_SILENCE_NS + NOCTULE_CLIENT_CONNECT_NS && polls < 60);
    CHECK(noctule_client_counts(&self->client)->abandoned == 1);
    CHECK(noctule_client_publish(&self->client, 0, (const uint8_t *)"abc", 3, 0) == NOCTULE_CLIENT_NOT_READY);
    free(self);
}

static void an_agent_that_is_heard_but_acknowledges_nothing_is_greeted_anew(void) {
    bench_t *self = bench();
    int64_t now = 0;
    connect(self, false);
    /* An hour without samples is no stall. */
    for (; now < 3600 * INT64_C(1000) * MS; now += 1000 * MS) give(self, now, "81 02 00 00 | 0B 01 05 00 | 00 00 00 00 80");
    CHECK(noctule_client_state(&self->client) == NOCTULE_READY);
    CHECK(noctule_client_publish(&self->client, 0, (const uint8_t *)"abc", 3, now) == NOCTULE_CLIENT_OK);
    {
        const int64_t begin = now;
        while (noctule_client_state(&self->client) == NOCTULE_READY && now < begin + 60 * INT64_C(1000) * MS) {
            give(self, now, "81 00 00 00 | 0B 01 05 00 | 00 00 00 00 80");
            while (noctule_client_poll_transmit(&self->client, now, self->out, sizeof self->out) > 0) {}
            now += 100 * MS;
        }
        CHECK(now >= begin + NOCTULE_CLIENT_STALL_NS && now <= begin + NOCTULE_CLIENT_STALL_NS + 200 * MS);
    }
    CHECK(noctule_client_state(&self->client) == NOCTULE_CONNECTING && noctule_client_counts(&self->client)->abandoned == 1);
    free(self);
}

static void a_frame_is_the_captured_one(void) {
    bench_t *self = bench();
    uint8_t bytes[100];
    size_t length, i;
    self->config.line = NOCTULE_SERIAL;
    start(self);
    CHECK(noctule_client_poll_transmit(&self->client, 0, self->out, sizeof self->out) > 0);
    /* An agent's answer in a frame, byte by byte, after noise and half a frame; its key holds what must be escaped. */
    length = parse("00 FF 7E 00 01 13 | 7E 00 01 13 00 | 81 00 00 00 04 01 0B 00 00 00 58 52 43 45 01 00 01 0F 00 | 77 0D", bytes);
    {
        uint16_t crc = 0;
        for (i = 11; i < length - 2; i++) {
            int bit;
            crc ^= bytes[i];
            for (bit = 0; bit < 8; bit++) crc = (uint16_t)(crc & 1 ? crc >> 1 ^ 0xA001 : crc >> 1);
        }
        bytes[length - 2] = (uint8_t)crc;
        bytes[length - 1] = (uint8_t)(crc >> 8);
    }
    for (i = 0; i < length; i++) noctule_client_handle_bytes(&self->client, bytes + i, 1, 0);
    CHECK(noctule_client_state(&self->client) == NOCTULE_CREATING);
    CHECK(noctule_client_counts(&self->client)->frame_errors == 1);
    while (noctule_client_poll_transmit(&self->client, 0, self->out, sizeof self->out) > 0) {}
    expect(self, 10 * MS, "7E 01 00 0D 00 | 81 00 00 00 0B 01 05 00 00 00 03 00 80 | EB 1C");
    free(self);
}

static void on_a_serial_line_a_short_answer_goes_ahead_of_the_acknowledgement_once(void) {
    static const uint8_t sample[200] = {0}, kinds[] = {7, 10, 7, 10, 7}; /* WRITE_DATA 7, ACKNACK 10. */
    bench_t *self = bench();
    unsigned i;
    connect(self, false);
    self->client.config.line = NOCTULE_SERIAL;
    for (i = 0; i < sizeof kinds; i++) {
        if (i == 0) give(self, 0, "81 80 0B 00 | 09 01 08 00 | 80 02 00 26 | 01 02 03 04");
        if (i == 3) give(self, 0, "81 80 0C 00 | 09 01 08 00 | 80 02 00 26 | 01 02 03 04");
        if (i < 4 && i != 2) CHECK(noctule_client_publish(&self->client, 0, sample, i == 3 ? 200 : 100, 0) == NOCTULE_CLIENT_OK);
        CHECK(noctule_client_poll_transmit(&self->client, 0, self->out, sizeof self->out) > 0 && self->out[9] == kinds[i]);
    }
    free(self);
}

/* The frame a stock client sends, out of session; ours differs in the session, so the bytes are put together here. */
static void the_checksum_is_the_captured_one(void) {
    bench_t *self = bench();
    uint8_t bytes[40];
    const size_t length = parse("7E 00 01 10 00 | 80 00 00 00 02 01 08 00 00 0A FF FD 02 00 00 00 | CF 12", bytes);
    self->config.line = NOCTULE_SERIAL;
    start(self);
    noctule_client_handle_bytes(&self->client, bytes, length, 0);
    /* Whole, so that it got as far as being no message of a session. */
    CHECK(noctule_client_counts(&self->client)->frame_errors == 0 && noctule_client_counts(&self->client)->malformed == 1);
    bytes[length - 1] ^= 1;
    noctule_client_handle_bytes(&self->client, bytes, length, 0);
    CHECK(noctule_client_counts(&self->client)->frame_errors == 1 && noctule_client_counts(&self->client)->malformed == 1);
    free(self);
}

static void four_stamps_are_matched_by_the_first_and_the_fourth_returned(void) {
    bench_t *self = bench();
    self->config.sync_interval_ns = 100 * MS;
    self->config.endpoint_count = 0;
    start(self);
    CHECK(noctule_client_poll_transmit(&self->client, INT64_C(3000000000), self->out, sizeof self->out) == 24);
    give(self, INT64_C(3000000000), "81 00 00 00 | 04 01 0B 00 | 00 00 | 58 52 43 45 01 00 4E 43 00");
    expect(self, INT64_C(3000000009), "81 00 00 00 | 0E 01 08 00 | 03 00 00 00 09 00 00 00");
    give(self, INT64_C(3000000500), "81 00 00 00 | 0F 01 18 00 | 08 00 00 00 02 00 00 00 | 08 00 00 00 01 00 00 00 | 03 00 00 00 08 00 00 00");
    CHECK(self->seen.exchanges == 0 && noctule_client_counts(&self->client)->stale_answers == 1);
    give(self, INT64_C(3000000600), "81 00 00 00 | 0F 01 18 00 | 08 00 00 00 02 00 00 00 | 08 00 00 00 01 00 00 00 | 03 00 00 00 09 00 00 00");
    CHECK(self->seen.exchanges == 1 && self->seen.exchange.t1_ns == INT64_C(3000000009));
    CHECK(self->seen.exchange.t2_ns == INT64_C(8000000001) && self->seen.exchange.t3_ns == INT64_C(8000000002));
    CHECK(self->seen.exchange.t4_ns == INT64_C(3000000600));
    expect(self, INT64_C(3000000700), "81 00 00 00 | 0F 01 18 00 | 03 00 00 00 BC 02 00 00 | 03 00 00 00 58 02 00 00 | 08 00 00 00 02 00 00 00");
    free(self);
}

static void reliable_messages_are_put_in_order_and_the_gap_is_named(void) {
    bench_t *self = bench();
    connect(self, false);
    give(self, 0, "81 80 0D 00 | 09 01 05 00 80 02 00 26 03");
    give(self, 0, "81 80 0C 00 | 09 01 05 00 80 02 00 26 02");
    CHECK(self->seen.samples == 0);
    expect(self, 0, "81 00 00 00 | 0A 01 05 00 | 0B 00 00 01 80");
    give(self, 0, "81 80 0B 00 | 09 01 05 00 80 02 00 26 01");
    CHECK(self->seen.samples == 3 && self->seen.bytes[0] == 3);
    expect(self, 0, "81 00 00 00 | 0A 01 05 00 | 0E 00 00 00 80");
    give(self, 0, "81 00 00 00 | 0B 01 05 00 | 0E 00 0F 00 80");
    expect(self, 0, "81 00 00 00 | 0A 01 05 00 | 0E 00 00 03 80");
    give(self, 0, "81 80 1F 00 | 09 01 05 00 80 02 00 26 01");
    CHECK(noctule_client_counts(&self->client)->unstorable_messages == 1);
    free(self);
}

static void a_large_sample_is_cut_and_put_together(void) {
    bench_t *self = bench();
    static uint8_t sample[1400];
    uint8_t message[MESSAGE];
    uint32_t i, at = 0;
    int32_t got;
    connect(self, false);
    for (i = 0; i < sizeof sample; i++) sample[i] = (uint8_t)(i * 7);
    CHECK(noctule_client_publish(&self->client, 0, sample, sizeof sample, 0) == NOCTULE_CLIENT_OK);
    CHECK(noctule_client_unacknowledged(&self->client) == 3);
    for (i = 0; i < 3; i++) {
        got = noctule_client_poll_transmit(&self->client, 0, self->out, sizeof self->out);
        CHECK(got == (i < 2 ? 508 : 8 + 1408 - 1000) && self->out[4] == 13 && self->out[5] == (i < 2 ? 1 : 3));
        /* DATA on arrival differs from WRITE_DATA on departure in the name of the submessage and of the object. */
        memcpy(message, self->out, (size_t)got);
        message[2] = (uint8_t)(0x0B + i);
        if (i == 0) {
            message[8] = 9;
            message[14] = 0;
            message[15] = 0x26;
            CHECK(memcmp(message + 16, sample, 492) == 0);
        }
        noctule_client_handle_datagram(&self->client, message, (size_t)got, 0);
        if (i < 2) CHECK(noctule_client_poll_transmit(&self->client, 0, self->out + MESSAGE, MESSAGE) == 13);
        at += (uint32_t)got;
    }
    CHECK(at == 3 * 8 + 8 + sizeof sample);
    CHECK(self->seen.samples == 1 && self->seen.length == sizeof sample);
    CHECK(memcmp(self->seen.bytes, sample, sizeof sample) == 0);
    CHECK(noctule_client_publish(&self->client, 0, sample, sizeof sample, 0) == NOCTULE_CLIENT_FULL);
    CHECK(noctule_client_publish(&self->client, 2, sample, sizeof sample, 0) == NOCTULE_CLIENT_TOO_LARGE);
    free(self);
}

static void full_queues_refuse_and_count(void) {
    bench_t *self = bench();
    static const uint8_t sample[400];
    uint32_t taken = 0;
    connect(self, false);
    while (noctule_client_publish(&self->client, 0, sample, sizeof sample, 0) == NOCTULE_CLIENT_OK) taken++;
    CHECK(taken == OUT);
    CHECK(noctule_client_publish(&self->client, 0, sample, 400, 0) == NOCTULE_CLIENT_FULL);
    /* A message that was not sent yet has room left for what is short. */
    CHECK(noctule_client_publish(&self->client, 0, sample, 80, 0) == NOCTULE_CLIENT_OK);
    CHECK(noctule_client_publish(&self->client, 2, sample, 400, 0) == NOCTULE_CLIENT_OK);
    CHECK(noctule_client_publish(&self->client, 2, sample, 400, 0) == NOCTULE_CLIENT_FULL);
    CHECK(noctule_client_publish(&self->client, 1, sample, 4, 0) == NOCTULE_CLIENT_WRONG_ENDPOINT);
    CHECK(noctule_client_publish(&self->client, 4, sample, 4, 0) == NOCTULE_CLIENT_WRONG_ENDPOINT);
    CHECK(noctule_client_publish(&self->client, 0, sample, 65528, 0) == NOCTULE_CLIENT_TOO_LARGE);
    CHECK(noctule_client_counts(&self->client)->published == OUT + 2);
    CHECK(noctule_client_counts(&self->client)->refused_samples == 6);
    CHECK(noctule_client_poll_transmit(&self->client, 0, self->out, MESSAGE - 1) == NOCTULE_CLIENT_NO_ROOM);
    free(self);
}

static void a_configuration_that_cannot_work_is_refused_by_name(void) {
    bench_t *self = bench();
    static char long_name[600];
    noctule_endpoint_t endpoint = {long_name, "T", 0, 0};
    noctule_client_config_t good = self->config, bad;
    memset(long_name, 'n', sizeof long_name - 1);
#define REFUSED(change, error)                                  \
    bad = good;                                                 \
    change;                                                     \
    CHECK(noctule_client_init(&self->client, &bad) == (error)); \
    CHECK(noctule_client_poll_transmit(&self->client, 0, self->out, sizeof self->out) == 0)
    REFUSED(bad.key = 0, NOCTULE_CLIENT_KEY_IS_ZERO);
    REFUSED(bad.message_bytes = 60, NOCTULE_CLIENT_MESSAGE_BYTES);
    REFUSED(bad.message_bytes = 506, NOCTULE_CLIENT_MESSAGE_BYTES);
    REFUSED(bad.message_bytes = 65532, NOCTULE_CLIENT_MESSAGE_BYTES);
    REFUSED(bad.slots_out = 0, NOCTULE_CLIENT_SLOTS);
    REFUSED(bad.slots_out = 3, NOCTULE_CLIENT_SLOTS);
    REFUSED(bad.slots_in = 16, NOCTULE_CLIENT_SLOTS);
    REFUSED(bad.memory_bytes--, NOCTULE_CLIENT_MEMORY);
    REFUSED(bad.large_bytes = UINT32_MAX, NOCTULE_CLIENT_MEMORY);
    REFUSED(bad.endpoint_count = 5000, NOCTULE_CLIENT_ENDPOINTS);
    REFUSED((bad.endpoints = &endpoint, bad.endpoint_count = 1), NOCTULE_CLIENT_NAME_TOO_LONG);
    REFUSED(bad.participant = long_name, NOCTULE_CLIENT_NAME_TOO_LONG);
    CHECK(strlen(noctule_client_error_text(NOCTULE_CLIENT_NAME_TOO_LONG)) > 20);
    free(self);
}

static void a_refused_object_is_named_and_the_others_go_on(void) {
    bench_t *self = bench();
    uint16_t step;
    start(self);
    noctule_client_poll_transmit(&self->client, 0, self->out, sizeof self->out);
    give(self, 0, "81 00 00 00 | 04 01 0B 00 | 00 00 | 58 52 43 45 01 00 01 0F 00");
    while (noctule_client_poll_transmit(&self->client, 0, self->out, sizeof self->out) > 0) {}
    for (step = 0; step < 11; step++) {
        char status[100];
        sprintf(status, "81 80 %02X 00 | 05 01 06 00 | 00 %02X 00 35 | %02X 00", step, 10 + step, step == 8 ? 0x83 : 1);
        give(self, 0, status);
    }
    CHECK(noctule_client_state(&self->client) == NOCTULE_READY);
    CHECK(noctule_client_counts(&self->client)->refused_objects == 1);
    CHECK(noctule_client_refusal(&self->client).object == 0x35 && noctule_client_refusal(&self->client).status == 0x83);
    free(self);
}

static void numbers_wrap_without_a_trace(void) {
    bench_t *self = bench();
    uint32_t i;
    connect(self, false);
    for (i = 0; i < 70000; i++) {
        char text[100];
        const uint32_t out = i + 2, in = i + 11;
        CHECK(noctule_client_publish(&self->client, 0, (const uint8_t *)&i, 4, 0) == NOCTULE_CLIENT_OK);
        CHECK(noctule_client_poll_transmit(&self->client, 0, self->out, sizeof self->out) == 16);
        sprintf(text, "81 00 00 00 | 0A 01 05 00 | %02X %02X 00 00 80", out & 255, out >> 8 & 255);
        give(self, 0, text);
        sprintf(text, "81 80 %02X %02X | 09 01 05 00 80 02 00 26 03", in & 255, in >> 8 & 255);
        give(self, 0, text);
        sprintf(text, "81 00 00 00 | 0A 01 05 00 | %02X %02X 00 00 80", (in + 1) & 255, (in + 1) >> 8 & 255);
        expect(self, 0, text);
    }
    CHECK(self->seen.samples == 70000 && noctule_client_counts(&self->client)->acknowledged == 70000);
    free(self);
}

static void cdr_aligns_like_every_other_cdr(void) {
    uint8_t bytes[64];
    const uint8_t expected[] = {1,    0,    2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 3, 0,
                                0,    0,    'a', 'b', 0, 0, 0, 0, 0x80, 0x3F, 0, 0, 0, 0, 0, 0, 0, 0xC0};
    noctule_cdr_writer_t w = noctule_cdr_writer(bytes, sizeof bytes);
    noctule_cdr_reader_t r;
    uint32_t length;
    noctule_cdr_put_u8(&w, 1);
    noctule_cdr_put_u16(&w, 2);
    noctule_cdr_put_u32(&w, 3);
    noctule_cdr_put_u64(&w, 4);
    noctule_cdr_put_string(&w, "ab");
    noctule_cdr_put_f32(&w, 1.0F);
    CHECK(!w.failed && w.length == 28 && memcmp(bytes, expected, 28) == 0);
    noctule_cdr_put_f64(&w, -2.0);
    CHECK(w.length == 40 && bytes[39] == 0xC0);
    r = noctule_cdr_reader(bytes, w.length);
    CHECK(noctule_cdr_take_u8(&r) == 1 && noctule_cdr_take_u16(&r) == 2 && noctule_cdr_take_u32(&r) == 3);
    CHECK(noctule_cdr_take_u64(&r) == 4 && strcmp(noctule_cdr_take_string(&r, &length), "ab") == 0 && length == 2);
    CHECK(fabsf(noctule_cdr_take_f32(&r) - 1.0F) <= 0 && fabs(noctule_cdr_take_f64(&r) + 2.0) <= 0 && !r.failed);
    CHECK(noctule_cdr_take_u8(&r) == 0 && r.failed);
    for (length = 0; length < 28; length++) {
        uint32_t ignored;
        w = noctule_cdr_writer(bytes, length);
        r = noctule_cdr_reader(expected, length);
        noctule_cdr_put_bytes(&w, expected, 16);
        noctule_cdr_put_string(&w, "ab");
        noctule_cdr_put_u32(&w, 0);
        noctule_cdr_take_bytes(&r, 16);
        noctule_cdr_take_string(&r, &ignored);
        noctule_cdr_take_u32(&r);
        CHECK(w.failed && r.failed && w.length <= length && r.at <= length);
    }
}

static uint64_t random_state;

static uint32_t random_below(uint32_t limit) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % limit;
}

/* Messages an agent could send, with some octets changed, cut short or run together: whatever comes, the client stays
 * within its memory (the sanitizers look) and within its limits. */
static void hostile_bytes_do_no_harm(uint64_t seed, uint32_t rounds) {
    static const char *const seeds[] = {
        "81 00 00 00 | 04 01 0B 00 | 00 00 | 58 52 43 45 01 00 4E 43 00",
        "81 80 00 00 | 05 01 06 00 | 00 0A 00 11 | 00 00",
        "81 80 01 00 | 09 01 08 00 80 02 00 26 01 02 03 04 | 09 01 05 00 80 04 00 46 07",
        "81 01 00 00 | 09 01 05 00 80 04 00 46 55",
        "81 80 02 00 | 0D 01 08 00 09 01 30 00 80 02 00 26",
        "81 80 03 00 | 0D 03 08 00 01 02 03 04 05 06 07 08",
        "81 00 00 00 | 0A 01 05 00 | 02 00 00 03 80",
        "81 00 00 00 | 0B 01 05 00 | 02 00 09 00 80",
        "81 00 00 00 | 06 01 1C 00 00 0A FF FD 00 01 01 0D 58 52 43 45 01 00 01 0F 00 01 0D 00 01 00 00 00 00 00 00 00",
        "81 00 00 00 | 0F 01 18 00 | 08 00 00 00 02 00 00 00 | 08 00 00 00 01 00 00 00 | 00 00 00 00 00 00 00 00",
    };
    static uint8_t bytes[MESSAGE * 2], framed[MESSAGE * 4];
    bench_t *self = bench();
    uint32_t round, i;
    int64_t now = 0;
    random_state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    self->config.sync_interval_ns = 10 * MS;
    connect(self, true);
    for (round = 0; round < rounds; round++) {
        size_t length = parse(seeds[random_below(10)], bytes);
        if (length < 8) exit(1);
        bytes[2] = (uint8_t)(bytes[1] == 0x80 ? self->client.in_next + random_below(6) : bytes[2]);
        if (bytes[1] == 0x80 && random_below(4) > 0) bytes[3] = (uint8_t)(self->client.in_next >> 8);
        for (i = random_below(4); i > 0; i--) bytes[random_below((uint32_t)length)] = (uint8_t)random_below(256);
        if (random_below(4) == 0) length = random_below((uint32_t)length + 1);
        if (random_below(8) == 0)
            for (i = random_below(MESSAGE); length < i; length++) bytes[length] = (uint8_t)random_below(256);
        /* A copy of its own length, so that a look beyond it is seen. */
        {
            uint8_t *copy = malloc(length == 0 ? 1 : length);
            CHECK(copy != NULL);
            memcpy(copy, bytes, length);
            if (random_below(8) > 0) {
                noctule_client_handle_datagram(&self->client, copy, length, now);
            } else {
                for (i = 0; i < length; i++) framed[i] = random_below(10) == 0 ? 0x7E : copy[i];
                noctule_client_handle_bytes(&self->client, framed, length, now);
            }
            free(copy);
        }
        if (random_below(3) == 0)
            noctule_client_publish(&self->client, (uint16_t)random_below(6), bytes, random_below(MESSAGE * 2), now);
        for (i = 0; noctule_client_poll_transmit(&self->client, now, self->out, sizeof self->out) > 0; i++) CHECK(i < 100);
        CHECK(noctule_client_unacknowledged(&self->client) <= OUT);
        CHECK(noctule_client_state(&self->client) == NOCTULE_CLOSED || noctule_client_next_timeout(&self->client, now) > now);
        now += random_below(50) * MS;
        if (noctule_client_state(&self->client) == NOCTULE_CONNECTING && random_below(4) == 0)
            give(self, now, "81 00 00 00 | 04 01 0B 00 | 00 00 | 58 52 43 45 01 00 4E 43 00");
    }
    CHECK(noctule_client_counts(&self->client)->malformed > rounds / 20 && self->seen.samples > 0);
    CHECK(noctule_client_counts(&self->client)->sessions > 1);
    printf("seed %llu: %u hostile messages, %u malformed, %u samples, %u sessions\n", (unsigned long long)seed, rounds,
           noctule_client_counts(&self->client)->malformed, self->seen.samples,
           noctule_client_counts(&self->client)->sessions);
    free(self);
}

int main(int argc, char **argv) {
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const uint32_t rounds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 200000;
    objects_are_created_in_binary_and_readers_read();
    samples_travel_both_ways_in_the_captured_form();
    a_stamp_goes_before_its_sample_to_noctule_only();
    pings_and_leave_are_those_of_stock_clients();
    a_lost_agent_is_looked_for_after_the_silence();
    an_agent_that_is_heard_but_acknowledges_nothing_is_greeted_anew();
    a_frame_is_the_captured_one();
    on_a_serial_line_a_short_answer_goes_ahead_of_the_acknowledgement_once();
    the_checksum_is_the_captured_one();
    four_stamps_are_matched_by_the_first_and_the_fourth_returned();
    reliable_messages_are_put_in_order_and_the_gap_is_named();
    a_large_sample_is_cut_and_put_together();
    full_queues_refuse_and_count();
    a_configuration_that_cannot_work_is_refused_by_name();
    a_refused_object_is_named_and_the_others_go_on();
    numbers_wrap_without_a_trace();
    cdr_aligns_like_every_other_cdr();
    hostile_bytes_do_no_harm(seed, rounds);
    printf("client: all of 18 tests passed\n");
    return 0;
}
