/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Cost of the client on a Cortex-M3, in instructions: run in QEMU with `-icount shift=0`, where an instruction takes one
 * nanosecond and a tick of the timer forty. Prints a line each; the loop around is part of the figure.
 */
#include <string.h>

#include "../noctule_client.h"
#include "../ports/mps2_an385/noctule_mps2.h"

enum { MESSAGE = 256, ROUNDS = 1000, PAYLOAD = 115 };

static const noctule_endpoint_t endpoints[] = {
    {"rt/a", "A", NOCTULE_PUBLISH, 0},
    {"rt/b", "B", NOCTULE_PUBLISH | NOCTULE_RELIABLE, 0},
    {"rt/c", "C", NOCTULE_SUBSCRIBE, 0},
};

static noctule_client_t client;
static noctule_bounded_t bounded;
static uint8_t memory[NOCTULE_CLIENT_MEMORY_BYTES(MESSAGE, 4, 4, 0)];
static uint8_t out[NOCTULE_CLIENT_TRANSMIT_BYTES(MESSAGE)], payload[PAYLOAD], frame[NOCTULE_CLIENT_TRANSMIT_BYTES(MESSAGE)];
static uint32_t samples;

static void on_sample(void *context, uint16_t endpoint, const uint8_t *bytes, uint32_t length, int64_t arrived_ns) {
    (void)context, (void)bytes, (void)arrived_ns;
    if (endpoint == 2 && length == PAYLOAD) samples++;
}

static void print(const char *what, int64_t took_ns, uint32_t rounds) {
    char line[80], digits[12];
    uint32_t each = (uint32_t)took_ns / rounds, n = 0;
    size_t at = strlen(what);
    memcpy(line, what, at);
    line[at++] = ' ';
    do digits[n++] = (char)('0' + each % 10);
    while ((each /= 10) > 0);
    while (n > 0) line[at++] = digits[--n];
    line[at++] = '\n';
    line[at] = 0;
    mps2_print(line);
}

static void start(noctule_line_t line) {
    static const uint8_t accepted[] = {0x81, 0, 0, 0, 4, 1, 11, 0, 0, 0, 'X', 'R', 'C', 'E', 1, 0, 1, 15, 0};
    uint8_t status[] = {0x81, 0x80, 0, 0, 5, 1, 6, 0, 0, 10, 0, 0x11, 0, 0};
    noctule_client_config_t config;
    memset(&config, 0, sizeof config);
    config.key = 1;
    config.line = NOCTULE_DATAGRAM;
    config.endpoints = endpoints;
    config.endpoint_count = 3;
    config.message_bytes = MESSAGE;
    config.slots_out = config.slots_in = 4;
    config.memory = memory;
    config.memory_bytes = sizeof memory;
    config.on_sample = on_sample;
    if (noctule_client_init(&client, &config) != NOCTULE_CLIENT_OK) mps2_exit(1);
    noctule_client_poll_transmit(&client, 0, out, sizeof out);
    noctule_client_handle_datagram(&client, accepted, sizeof accepted, 0);
    while (noctule_client_poll_transmit(&client, 0, out, sizeof out) > 0) {}
    for (; status[9] < 10 + 9; status[9]++, status[2]++)
        noctule_client_handle_datagram(&client, status, sizeof status, 0);
    {
        const uint8_t acknack[] = {0x81, 0, 0, 0, 10, 1, 5, 0, (uint8_t)noctule_client_unacknowledged(&client), 0, 0, 0, 0x80};
        noctule_client_handle_datagram(&client, acknack, sizeof acknack, 0);
    }
    while (noctule_client_poll_transmit(&client, 0, out, sizeof out) > 0) {}
    if (noctule_client_state(&client) != NOCTULE_READY || noctule_client_unacknowledged(&client) != 0) mps2_exit(2);
    client.config.line = line; /* The messages above came without frames. */
}

static void publish(const char *what, noctule_line_t line, uint16_t endpoint) {
    uint32_t i;
    int64_t begin;
    uint16_t number = 0;
    start(line);
    number = client.out_next;
    begin = mps2_now_ns();
    for (i = 0; i < ROUNDS; i++) {
        if (noctule_client_publish(&client, endpoint, payload, PAYLOAD, 0) != NOCTULE_CLIENT_OK) mps2_exit(3);
        if (noctule_client_poll_transmit(&client, 0, out, sizeof out) <= 0) mps2_exit(4);
        if (endpoint == 1) {
            uint8_t acknack[] = {0x81, 0, 0, 0, 10, 1, 5, 0, 0, 0, 0, 0, 0x80};
            number++;
            acknack[8] = (uint8_t)number;
            acknack[9] = (uint8_t)(number >> 8);
            noctule_client_handle_datagram(&client, acknack, sizeof acknack, 0);
        }
    }
    print(what, mps2_now_ns() - begin, ROUNDS);
}

static void receive(const char *what, noctule_line_t line) {
    uint8_t data[4 + 8 + PAYLOAD] = {0x81, 1, 0, 0, 9, 1, 4 + PAYLOAD, 0, 0x80, 3, 0, 0x36};
    int64_t took_ns = 0;
    uint32_t i;
    start(line);
    samples = 0;
    for (i = 0; i < ROUNDS; i++) {
        int64_t begin;
        int32_t length = sizeof data;
        data[2] = (uint8_t)i;
        data[3] = (uint8_t)(i >> 8);
        memcpy(frame, data, sizeof data);
        if (line == NOCTULE_SERIAL) {
            /* The client's own frames differ from the agent's in two octets that no checksum covers. */
            client.config.address = 0;
            memcpy(client.best_effort, data, sizeof data);
            client.best_effort_length = sizeof data;
            client.best_effort_out = (uint16_t)i;
            length = noctule_client_poll_transmit(&client, 0, frame, sizeof frame);
            frame[2] = 1;
            client.config.address = 1;
        }
        begin = mps2_now_ns();
        if (line == NOCTULE_SERIAL)
            noctule_client_handle_bytes(&client, frame, (size_t)length, 0);
        else
            noctule_client_handle_datagram(&client, frame, (size_t)length, 0);
        took_ns += mps2_now_ns() - begin;
    }
    if (samples != ROUNDS) mps2_exit(5);
    print(what, took_ns, ROUNDS);
}

static void estimate(void) {
    int64_t took_ns = 0, begin;
    uint32_t i;
    noctule_bounded_init(&bounded, NULL);
    for (i = 0; i < ROUNDS; i++) {
        noctule_exchange_t x;
        x.t1_ns = (int64_t)i * 100000000;
        x.t2_ns = x.t1_ns + 5000300000 + (i * 7919 % 101) * 1000;
        x.t3_ns = x.t2_ns + 20000;
        x.t4_ns = x.t3_ns - 5000000000 + 300000 + (i * 104729 % 97) * 1000;
        begin = mps2_now_ns();
        noctule_bounded_handle_exchange(&bounded, &x);
        took_ns += mps2_now_ns() - begin;
    }
    print("bounded estimator, one exchange:", took_ns, ROUNDS);
}

int main(void) {
    mps2_init(921600);
    publish("publish 115 B, best effort, datagram:", NOCTULE_DATAGRAM, 0);
    publish("publish 115 B, best effort, serial frame:", NOCTULE_SERIAL, 0);
    publish("publish 115 B, reliable, datagram, with its ACKNACK:", NOCTULE_DATAGRAM, 1);
    receive("receive 115 B, best effort, datagram:", NOCTULE_DATAGRAM);
    receive("receive 115 B, best effort, serial frame:", NOCTULE_SERIAL);
    estimate();
    mps2_exit(0);
}
