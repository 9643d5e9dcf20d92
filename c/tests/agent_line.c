/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The scripted agent at the other end of a real line: a pseudo terminal whose name it links to PATH, or UDP.
 *
 *     agent_line serial PATH | udp PORT   SECONDS [HZ [NOISE [UNPLUGS [close|deaf]]]]
 *
 * It publishes counters at HZ and counts what the board of examples/board.h sends. NOISE bytes in a million are garbled,
 * each way. UNPLUGS times, evenly spread, the line is gone for half a second: closed, or deaf. Prints `ready` when it
 * listens, and its counts as one line of JSON at the end. The noise is drawn from a fixed seed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "scripted_agent.h"

#define SECOND_NS INT64_C(1000000000)

typedef struct {
    uint32_t got, missing, next;
} stream_t;

static const char *path;
static int line = -1;
static struct sockaddr_in peer;
static bool deaf;
static uint32_t noise, cut_writes;
static uint64_t random_state = 12345;
static agent_t agent;
static agent_deframer_t deframer;
static stream_t up, up_fast;
static uint32_t reports, pongs, unreadable, last_unused_bytes;
static float idle_sum, last_idle;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

static uint32_t random_below(uint32_t limit) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % limit;
}

static void garble(uint8_t *bytes, size_t length) {
    size_t i;
    for (i = 0; i < length; i++)
        if (random_below(1000000) < noise) bytes[i] = (uint8_t)random_below(256);
}

static void open_line(int port) {
    if (path == NULL) {
        struct sockaddr_in address;
        memset(&address, 0, sizeof address);
        address.sin_family = AF_INET;
        address.sin_port = htons((uint16_t)port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        line = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        if (line >= 0 && bind(line, (const struct sockaddr *)&address, sizeof address) == 0) return;
    } else {
        struct termios raw;
        line = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
        unlink(path);
        if (line >= 0 && grantpt(line) == 0 && unlockpt(line) == 0 && tcgetattr(line, &raw) == 0) {
            cfmakeraw(&raw);
            if (tcsetattr(line, TCSANOW, &raw) == 0 && symlink(ptsname(line), path) == 0) return;
        }
    }
    perror("agent_line: cannot open the line");
    exit(2);
}

static void send_message(void *context, const uint8_t *message, size_t length) {
    uint8_t bytes[2 * AGENT_MESSAGE_MAX + 16];
    size_t at = 0;
    (void)context;
    if (line < 0 || deaf) return;
    if (path == NULL) {
        if (sendto(line, message, length, 0, (const struct sockaddr *)&peer, sizeof peer) < 0) cut_writes++;
        return;
    }
    length = agent_frame(message, length, 0, 1, bytes);
    garble(bytes, length);
    while (at < length) {
        const ssize_t wrote = write(line, bytes + at, length - at);
        if (wrote > 0) {
            at += (size_t)wrote;
        } else {
            struct pollfd room = {line, POLLOUT, 0};
            if ((wrote < 0 && errno != EAGAIN) || poll(&room, 1, 100) <= 0) break;
        }
    }
    if (at < length) cut_writes++;
}

static void count(stream_t *stream, const uint8_t *bytes) {
    uint32_t number;
    memcpy(&number, bytes, 4);
    /* A garbled number that passed the checksum must not shift all others. */
    if (number < stream->next || number - stream->next > 100000) {
        unreadable++;
        return;
    }
    stream->missing += number - stream->next;
    stream->next = number + 1;
    stream->got++;
}

static void on_write(void *context, const char *topic, const uint8_t *bytes, uint32_t length) {
    (void)context;
    if (strcmp(topic, "rt/board/up") == 0 && length == 4) {
        count(&up, bytes);
    } else if (strcmp(topic, "rt/board/up_fast") == 0 && length == 4) {
        count(&up_fast, bytes);
    } else if (strcmp(topic, "rt/board/pong") == 0) {
        pongs++;
    } else if (strcmp(topic, "rt/board/tasks") == 0 && length == 60) {
        memcpy(&last_idle, bytes + 8, 4);
        memcpy(&last_unused_bytes, bytes + 56, 4);
        idle_sum += last_idle;
        reports++;
    } else {
        unreadable++;
    }
}

static void receive(void) {
    uint8_t bytes[4096];
    size_t length = 0, i;
    socklen_t peer_size = sizeof peer;
    const ssize_t got = path == NULL ? recvfrom(line, bytes, sizeof bytes, 0, (struct sockaddr *)&peer, &peer_size)
                                     : read(line, bytes, sizeof bytes);
    if (got <= 0 || deaf) return;
    if (path == NULL) {
        agent_handle(&agent, bytes, (size_t)got, now_ns());
        return;
    }
    garble(bytes, (size_t)got);
    for (i = 0; i < (size_t)got; i++)
        if (agent_deframe(&deframer, bytes[i], &length)) agent_handle(&agent, deframer.bytes + 4, length, now_ns());
}

int main(int argc, char **argv) {
    const int port = argc > 2 && strcmp(argv[1], "udp") == 0 ? atoi(argv[2]) : 0;
    const int64_t seconds = argc > 3 ? atoi(argv[3]) : 0;
    const int64_t rate_hz = argc > 4 ? atoi(argv[4]) : 100;
    const uint32_t unplugs = argc > 6 ? (uint32_t)atoi(argv[6]) : 0;
    const bool closes = argc > 7 && strcmp(argv[7], "close") == 0;
    const int64_t start_ns = now_ns(), end_ns = start_ns + seconds * SECOND_NS;
    int64_t publish_ns = start_ns, back_ns = INT64_MAX, worst_back_ns = 0, joined_ns = INT64_MAX;
    uint32_t down = 0, down_fast = 0, pings = 0, done = 0, down_refused = 0, heard = 0;
    noise = argc > 5 ? (uint32_t)atoi(argv[5]) : 0;
    if (argc < 4 || (port == 0 && strcmp(argv[1], "serial") != 0) || seconds <= 0) {
        fprintf(stderr, "agent_line serial PATH | udp PORT, then SECONDS [HZ [NOISE [UNPLUGS [close|deaf]]]]\n");
        return 2;
    }
    path = port == 0 ? argv[2] : NULL;
    agent_init(&agent, true);
    agent.send = send_message;
    agent.on_write = on_write;
    open_line(port);
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        struct pollfd ready = {line, POLLIN, 0};
        struct timespec pause = {0, 0};
        int64_t now = now_ns(), next = publish_ns;
        if (now >= end_ns) break;
        if (agent_next_timeout(&agent) < next) next = agent_next_timeout(&agent);
        if (next > now) pause.tv_nsec = (long)(next - now < SECOND_NS / 100 ? next - now : SECOND_NS / 100);
        if (ppoll(&ready, 1, &pause, NULL) > 0 && ready.revents & POLLIN) receive();
        /* The other end is not open: poll would say so at once, again and again. */
        if (ready.revents & POLLHUP && !(ready.revents & POLLIN)) {
            struct timespec a_while = {0, 2000000};
            nanosleep(&a_while, NULL);
        }
        now = now_ns();
        agent_handle_timeout(&agent, now);
        if (now >= publish_ns) {
            const uint8_t ping[16] = {1};
            publish_ns += SECOND_NS / rate_hz;
            if (agent_publish(&agent, "rt/board/down", (const uint8_t *)&down, 4, now)) down++; else down_refused++;
            down_fast += agent_publish(&agent, "rt/board/down_fast", (const uint8_t *)&down_fast, 4, now);
            if (publish_ns / SECOND_NS != now / SECOND_NS) pings += agent_publish(&agent, "rt/board/ping", ping, 16, now);
        }
        if (joined_ns != INT64_MAX && up.got + up_fast.got > heard) {
            if (now - joined_ns > worst_back_ns) worst_back_ns = now - joined_ns;
            joined_ns = INT64_MAX;
        }
        if (now >= back_ns) {
            back_ns = INT64_MAX;
            joined_ns = now;
            heard = up.got + up_fast.got;
            deaf = false;
            if (closes) open_line(port);
        }
        if (done < unplugs && now - start_ns > (int64_t)(done + 1) * seconds * SECOND_NS / (unplugs + 1)) {
            done++;
            deaf = true;
            back_ns = now + SECOND_NS / 2;
            if (closes) {
                close(line);
                line = -1;
            }
        }
    }
    printf("{\"up\":%u,\"up_missing\":%u,\"up_fast\":%u,\"up_fast_missing\":%u,\"reports\":%u,\"pings\":%u,\"pongs\":%u,"
           "\"down\":%u,\"down_fast\":%u,\"down_refused\":%u,\"unreadable\":%u,\"cut_writes\":%u,\"sessions\":%u,"
           "\"fourths\":%u,\"ignored\":%u,\"unplugs\":%u,\"worst_back_ms\":%.1f,\"idle_share\":%.4f,\"stack_unused_bytes\":%u}\n",
           up.got, up.missing, up_fast.got, up_fast.missing, reports, pings, pongs, down, down_fast, down_refused,
           unreadable, cut_writes, agent.sessions, agent.fourths, agent.ignored, done, (double)worst_back_ns / 1e6,
           (double)(reports > 0 ? idle_sum / (float)reports : 0), last_unused_bytes);
    if (path != NULL) unlink(path);
    return 0;
}
