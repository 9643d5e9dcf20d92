/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The microcontroller client and a scripted agent on a simulated line that loses, repeats, reorders and garbles, is cut
 * and joined, while the agent is restarted. Time is simulated, every choice comes from the seed.
 *
 * Each side publishes numbered samples, reliable and best effort. What must hold, on every seed:
 * - reliable samples arrive in order and once; what is missing is in `abandoned`, or in a restart of the agent;
 * - best-effort samples arrive in order and once;
 * - published = acknowledged + abandoned + in flight, and the agent has at least those acknowledged;
 * - within a second of the line's return everything is up again;
 * - the client never asks to be called again at once: it does not spin.
 *
 * Arguments: first seed, number of seeds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../noctule_client.h"
#include "scripted_agent.h"

#define CHECK(what)                                                                                       \
    do {                                                                                                  \
        if (!(what)) {                                                                                    \
            fprintf(stderr, "%s:%d: seed %llu: not so: %s\n", __FILE__, __LINE__, (unsigned long long)seed, #what); \
            exit(1);                                                                                      \
        }                                                                                                 \
    } while (0)

#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)

enum { MESSAGE = 128, FLIGHT = 512, LARGE = 700, UP = 0, UP_FAST = 1, DOWN = 2, DOWN_FAST = 3 };

static const noctule_endpoint_t endpoints[] = {
    {"up", "N", NOCTULE_PUBLISH | NOCTULE_RELIABLE | NOCTULE_STAMPED, 0},
    {"up_fast", "N", NOCTULE_PUBLISH | NOCTULE_STAMPED, 0},
    {"down", "N", NOCTULE_SUBSCRIBE | NOCTULE_RELIABLE, 0},
    {"down_fast", "N", NOCTULE_SUBSCRIBE, 0},
};

/* Faults and delays of a line. */
typedef struct {
    const char *name;
    noctule_line_t kind;
    uint32_t lost_permille, repeated_permille, reordered_permille, garbled_permille_of_bytes;
    int64_t delay_ns, byte_ns;
    bool noctule, cut, restart;
} line_t;

static const line_t lines[] = {
    {"perfect", NOCTULE_DATAGRAM, 0, 0, 0, 0, 2 * MS, 0, false, false, false},
    {"lossy", NOCTULE_DATAGRAM, 100, 50, 50, 0, 3 * MS, 0, true, false, false},
    {"datagrams, cut and restarted", NOCTULE_DATAGRAM, 20, 10, 0, 0, 5 * MS, 0, true, true, true},
    {"serial at 115200", NOCTULE_SERIAL, 0, 0, 0, 0, MS, 86806, false, false, false},
    {"serial at 921600, 1 % noise", NOCTULE_SERIAL, 0, 0, 0, 10, MS, 10851, true, false, false},
    {"serial at 460800, 0.3 % noise, cut and restarted", NOCTULE_SERIAL, 0, 0, 0, 3, MS, 21701, true, true, true},
};

typedef struct {
    int64_t at_ns;
    bool to_client;
    uint16_t length, message_length;
    uint8_t bytes[2 * MESSAGE + 16], message[MESSAGE];
} packet_t;

typedef struct {
    uint32_t sent, refused, got, lost, next;
} stream_t;

static uint64_t seed, random_state;
static int64_t now;
static const line_t *line;
static packet_t flight[FLIGHT];
static uint32_t in_flight;
static int64_t line_free[2];
static bool line_is_cut;
static noctule_client_t client;
static agent_t agent;
static agent_deframer_t deframer, oracles[2];
static stream_t streams[4];
static uint32_t restarts, undetected;

static uint32_t random_below(uint32_t limit) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % limit;
}

/* One noisy frame in 65536 passes its 16-bit checksum. What happens then is not specified, so the line drops it. */
static bool passes_for_another(const packet_t *packet) {
    agent_deframer_t *oracle = &oracles[packet->to_client], before = *oracle;
    size_t i, length = 0;
    for (i = 0; i < packet->length; i++) {
        if (!agent_deframe(oracle, packet->bytes[i], &length)) continue;
        if (length == packet->message_length && memcmp(oracle->bytes + 4, packet->message, length) == 0) continue;
        *oracle = before;
        undetected++;
        return true;
    }
    return false;
}

static void put_on_line(bool to_client, const uint8_t *bytes, size_t length) {
    agent_deframer_t whole;
    packet_t *packet;
    size_t i;
    int64_t *free_ns = &line_free[to_client];
    uint32_t copies = 1;
    if (*free_ns < now) *free_ns = now;
    *free_ns += (int64_t)length * line->byte_ns;
    if (line_is_cut || random_below(1000) < line->lost_permille) return;
    if (random_below(1000) < line->repeated_permille) copies = 2;
    for (; copies > 0; copies--) {
        CHECK(in_flight < FLIGHT && length <= sizeof packet->bytes);
        packet = &flight[in_flight++];
        packet->to_client = to_client;
        packet->at_ns = *free_ns + line->delay_ns;
        if (random_below(1000) < line->reordered_permille) packet->at_ns += random_below(20) * MS;
        packet->length = (uint16_t)length;
        memcpy(packet->bytes, bytes, length);
        memset(&whole, 0, sizeof whole);
        for (i = 0; line->kind == NOCTULE_SERIAL && i < length; i++) {
            size_t message_length = 0;
            if (!agent_deframe(&whole, bytes[i], &message_length)) continue;
            CHECK(message_length <= MESSAGE);
            packet->message_length = (uint16_t)message_length;
            memcpy(packet->message, whole.bytes + 4, message_length);
        }
        for (i = 0; i < length; i++)
            if (random_below(1000) < line->garbled_permille_of_bytes) packet->bytes[i] = (uint8_t)random_below(256);
    }
}

static void from_agent(void *context, const uint8_t *message, size_t length) {
    uint8_t frame[2 * AGENT_MESSAGE_MAX + 16];
    (void)context;
    if (line->kind == NOCTULE_SERIAL) {
        length = agent_frame(message, length, 0, 1, frame);
        message = frame;
    }
    put_on_line(true, message, length);
}

/* A numbered sample; every fiftieth of a reliable stream is large enough for fragments. */
static uint32_t sample(uint32_t number, bool reliable, uint8_t *bytes) {
    const uint32_t length = reliable && number % 50 == 49 ? 500 : 4 + number % 40;
    uint32_t i;
    memcpy(bytes, &number, 4);
    for (i = 4; i < length; i++) bytes[i] = (uint8_t)(number + i);
    return length;
}

static void check_sample(int which, const uint8_t *bytes, uint32_t length) {
    uint8_t expected[LARGE];
    uint32_t number = UINT32_MAX;
    stream_t *stream = &streams[which];
    CHECK(length >= 4);
    memcpy(&number, bytes, 4);
    CHECK(number < stream->sent && number >= stream->next);
    CHECK(sample(number, which == UP || which == DOWN, expected) == length && memcmp(expected, bytes, length) == 0);
    stream->lost += number - stream->next;
    stream->next = number + 1;
    stream->got++;
}

static void on_write(void *context, const char *topic, const uint8_t *bytes, uint32_t length) {
    const int which = strcmp(topic, "up") == 0 ? UP : UP_FAST;
    (void)context;
    check_sample(which, bytes, length);
    CHECK(agent.last_stamp_ns == (line->noctule ? (int64_t)streams[which].next : 0));
}

static void on_sample(void *context, uint16_t endpoint, const uint8_t *bytes, uint32_t length, int64_t arrived_ns) {
    (void)context;
    CHECK(arrived_ns == now);
    check_sample(endpoint, bytes, length);
}

static void on_exchange(void *context, const noctule_exchange_t *x) {
    (void)context;
    /* The interval that four stamps prove holds the true offset. */
    CHECK(x->t3_ns - x->t4_ns <= agent.clock_offset_ns && agent.clock_offset_ns <= x->t2_ns - x->t1_ns);
}

static void publish_all(void) {
    static const char *const names[] = {"up", "up_fast", "down", "down_fast"};
    uint8_t bytes[LARGE];
    uint16_t i;
    for (i = 0; i < 4; i++) {
        const uint32_t length = sample(streams[i].sent, i == UP || i == DOWN, bytes);
        const bool taken = i < DOWN ? noctule_client_publish(&client, i, bytes, length, streams[i].sent + 1) == NOCTULE_CLIENT_OK
                                    : agent_publish(&agent, names[i], bytes, length, now);
        /* A refused sample keeps its number: whatever is missing was lost on the way. */
        if (taken)
            streams[i].sent++;
        else
            streams[i].refused++;
    }
}

static void deliver(uint32_t index) {
    packet_t packet = flight[index];
    size_t i, length = 0;
    flight[index] = flight[--in_flight];
    if (line_is_cut || (line->kind == NOCTULE_SERIAL && passes_for_another(&packet))) return;
    if (packet.to_client && line->kind == NOCTULE_SERIAL) {
        noctule_client_handle_bytes(&client, packet.bytes, packet.length, now);
    } else if (packet.to_client) {
        noctule_client_handle_datagram(&client, packet.bytes, packet.length, now);
    } else if (line->kind == NOCTULE_DATAGRAM) {
        agent_handle(&agent, packet.bytes, packet.length, now);
    } else {
        for (i = 0; i < packet.length; i++)
            if (agent_deframe(&deframer, packet.bytes[i], &length)) agent_handle(&agent, deframer.bytes + 4, length, now);
    }
}

static uint32_t earliest(void) {
    uint32_t i, best = 0;
    for (i = 1; i < in_flight; i++)
        if (flight[i].at_ns < flight[best].at_ns) best = i;
    return best;
}

static void start_agent(void) {
    agent_init(&agent, line->noctule);
    agent.send = from_agent;
    agent.on_write = on_write;
    agent.clock_offset_ns = 77 * SECOND + 123;
}

static void poll_client(void) {
    static uint8_t out[NOCTULE_CLIENT_TRANSMIT_BYTES(MESSAGE)];
    int32_t length;
    /* Only when the line is idle, as a port does: what is polled is stamped. */
    while (line_free[false] <= now && (length = noctule_client_poll_transmit(&client, now, out, sizeof out)) > 0)
        put_on_line(false, out, (size_t)length);
    if (line_free[false] <= now) CHECK(noctule_client_next_timeout(&client, now) > now);
}

static void run(const line_t *on, int64_t end_ns) {
    static uint8_t memory[NOCTULE_CLIENT_MEMORY_BYTES(MESSAGE, 8, 4, LARGE)];
    noctule_client_config_t config;
    int64_t publish_ns = 0, cut_ns = INT64_MAX, joined_ns = 0, next;
    const noctule_client_counts_t *counts = noctule_client_counts(&client);
    uint32_t readies = 0, wakes = 0;
    const bool loses_by_chance = on->lost_permille + on->garbled_permille_of_bytes > 0;
    line = on;
    random_state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    in_flight = restarts = undetected = 0;
    memset(oracles, 0, sizeof oracles);
    line_free[0] = line_free[1] = now = 0;
    line_is_cut = false;
    memset(streams, 0, sizeof streams);
    memset(&deframer, 0, sizeof deframer);
    memset(&config, 0, sizeof config);
    config.key = 7;
    config.line = line->kind;
    config.participant = "simulated";
    config.endpoints = endpoints;
    config.endpoint_count = 4;
    config.message_bytes = MESSAGE;
    config.slots_out = 8;
    config.slots_in = 4;
    config.large_bytes = LARGE;
    config.memory = memory;
    config.memory_bytes = sizeof memory;
    config.sync_interval_ns = 100 * MS;
    config.on_sample = on_sample;
    config.on_exchange = on_exchange;
    CHECK(noctule_client_init(&client, &config) == NOCTULE_CLIENT_OK);
    start_agent();
    if (line->cut) cut_ns = 4 * SECOND;
    while (now < end_ns) {
        poll_client();
        agent_handle_timeout(&agent, now);
        next = noctule_client_next_timeout(&client, now);
        if (next < line_free[false]) next = line_free[false];
        if (publish_ns < next) next = publish_ns;
        if (agent_next_timeout(&agent) < next) next = agent_next_timeout(&agent);
        if (cut_ns < next) next = cut_ns;
        if (in_flight > 0 && flight[earliest()].at_ns < next) next = flight[earliest()].at_ns;
        CHECK(next >= now && wakes++ < 4000000);
        now = next;
        while (in_flight > 0 && flight[earliest()].at_ns <= now) deliver(earliest());
        if (now >= cut_ns) {
            line_is_cut = !line_is_cut;
            cut_ns = now + (line_is_cut ? random_below(5000) * MS : 4 * SECOND);
            joined_ns = now;
            if (line->restart && !line_is_cut && random_below(2) == 0) {
                start_agent();
                restarts++;
            }
        }
        if (now >= publish_ns) {
            publish_all();
            publish_ns = now + 10 * MS;
        }
        if (!line_is_cut && noctule_client_state(&client) == NOCTULE_READY) {
            readies++;
            joined_ns = INT64_MAX;
        }
        /* Chance losses take more tries, each later than the one before, and seldom a second session. */
        if (!line_is_cut && joined_ns != INT64_MAX) CHECK(now - joined_ns <= (loses_by_chance ? 5 : 1) * SECOND);
    }
    CHECK(readies > 0 && (agent.ignored == 0 || (loses_by_chance && counts->sessions > 1)));
    CHECK(streams[UP].sent + streams[UP_FAST].sent == counts->published);
    CHECK(streams[UP].refused + streams[UP_FAST].refused == counts->refused_samples);
    CHECK(streams[UP].got >= counts->acknowledged && counts->acknowledged <= streams[UP].sent);
    CHECK(streams[UP].lost <= counts->abandoned && streams[DOWN].got + streams[DOWN_FAST].got == counts->received);
    CHECK(noctule_client_unacknowledged(&client) <= 8 && counts->exchanges > 0);
    CHECK(agent.fourths > 0 || !line->noctule || line->restart);
    if (!line->cut) CHECK(counts->sessions == 1 || (loses_by_chance && counts->sessions == 2));
    /* A second session begins anew. */
    if (!line->cut && counts->sessions == 1) CHECK(counts->abandoned == 0 && streams[UP].lost == 0 && streams[DOWN].lost == 0);
    if (strcmp(line->name, "perfect") == 0)
        CHECK(streams[UP_FAST].lost == 0 && streams[DOWN_FAST].lost == 0 && counts->resent_messages == 0 && streams[UP].refused < 20);
    printf("seed %llu, %s: up %u of %u (%u refused), fast %u of %u; down %u of %u, fast %u of %u; %u sessions, %u restarts, "
           "%u resent, %u abandoned, %u frame errors, %u undetected, %u wakes\n",
           (unsigned long long)seed, line->name, streams[UP].got, streams[UP].sent, streams[UP].refused, streams[UP_FAST].got,
           streams[UP_FAST].sent, streams[DOWN].got, streams[DOWN].sent, streams[DOWN_FAST].got, streams[DOWN_FAST].sent,
           counts->sessions, restarts, counts->resent_messages, counts->abandoned, counts->frame_errors, undetected, wakes);
}

int main(int argc, char **argv) {
    const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 10;
    size_t i;
    for (seed = first; seed < first + count; seed++)
        for (i = 0; i < sizeof lines / sizeof *lines; i++) run(&lines[i], 60 * SECOND);
    printf("client_link: %llu seeds on %u lines held\n", (unsigned long long)count, (unsigned)(sizeof lines / sizeof *lines));
    return 0;
}
