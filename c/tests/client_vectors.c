/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The agent's side of the conversations in vectors/xrce (README.md there), sent to our client: it must understand every
 * message, hand over every sample once, and acknowledge with the bytes that the client there sent. Of a
 * reliable message that the agent repeats the first copy was lost. The client's own objects are others than those of the
 * conversation, so the agent's acknowledgements are left out.
 *
 * Arguments: the files.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../noctule_client.h"

#define CHECK(what)                                                                  \
    do {                                                                             \
        if (!(what)) {                                                               \
            fprintf(stderr, "%s:%d: %s:%d: not so: %s\n", __FILE__, __LINE__, path, number, #what); \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

enum { MESSAGE = 512, LINES = 256, ACKNACK = 10, DATA = 9 };

static size_t parse(const char *text, uint8_t *bytes, size_t room) {
    char digits[3] = {0};
    size_t n = 0;
    while (*text != 0 && n < room) {
        if (strchr(" |\r\n", *text) != NULL) {
            text++;
            continue;
        }
        /* Two dots stand for any octet; none of ours depends on one. */
        memcpy(digits, text, 2);
        bytes[n++] = (uint8_t)strtoul(digits, NULL, 16);
        text += text[1] == 0 ? 1 : 2;
    }
    return n;
}

static void converse(const char *path) {
    static const noctule_endpoint_t endpoints[] = {{"t", "T", NOCTULE_SUBSCRIBE | NOCTULE_RELIABLE, 0}};
    static uint8_t memory[NOCTULE_CLIENT_MEMORY_BYTES(MESSAGE, 4, 4, 0)], out[MESSAGE], bytes[MESSAGE];
    static char lines[LINES][2048];
    static noctule_client_t client;
    noctule_client_config_t config;
    uint32_t samples = 0, lost = 0, acknowledged = 0;
    int number = 0, count = 0, later;
    FILE *file = fopen(path, "r");
    memset(&config, 0, sizeof config);
    config.key = 1;
    config.line = NOCTULE_DATAGRAM;
    config.endpoints = endpoints;
    config.endpoint_count = 1;
    config.message_bytes = MESSAGE;
    config.slots_out = config.slots_in = 4;
    config.memory = memory;
    config.memory_bytes = sizeof memory;
    CHECK(file != NULL && noctule_client_init(&client, &config) == NOCTULE_CLIENT_OK);
    while (count < LINES && fgets(lines[count], sizeof *lines, file) != NULL) count++;
    CHECK(count < LINES);
    fclose(file);
    for (number = 1; number <= count; number++) {
        const char *line = lines[number - 1];
        const size_t length = parse(line + (line[0] != 0), bytes, sizeof bytes);
        /* 80: outside of any session. */
        if ((line[0] != '<' && line[0] != '>') || length < 8 || bytes[0] != 0x81) continue;
        if (line[0] == '<' && bytes[4] != ACKNACK) {
            for (later = number; bytes[1] == 0x80 && later < count && strcmp(lines[later], line) != 0;) later++;
            if (bytes[1] == 0x80 && later < count) {
                lost++;
                continue;
            }
            if (bytes[4] == DATA) samples++;
            noctule_client_handle_datagram(&client, bytes, length, 0);
            CHECK(noctule_client_counts(&client)->malformed == 0);
        } else if (line[0] == '>' && bytes[1] == 0 && bytes[4] == ACKNACK) {
            CHECK(noctule_client_poll_transmit(&client, 0, out, sizeof out) == (int32_t)length);
            CHECK(memcmp(out, bytes, length) == 0);
            while (noctule_client_poll_transmit(&client, 0, out, sizeof out) > 0) {}
            acknowledged++;
        }
    }
    number = 0;
    CHECK(noctule_client_counts(&client)->received == samples);
    printf("%s: %u samples, %u acknowledgements, %u lost\n", path, samples, acknowledged, lost);
}

int main(int argc, char **argv) {
    int i;
    for (i = 1; i < argc; i++) converse(argv[i]);
    return argc > 1 ? 0 : 2;
}
