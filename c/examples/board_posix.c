/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The board of board.h as a program:
 *
 *     board_posix serial /dev/ttyUSB0 921600 [HZ [SECONDS [KEY]]]
 *     board_posix udp 127.0.0.1 8888 [HZ [SECONDS [KEY]]]
 *
 * After SECONDS (0: never) it takes leave and prints its counts as one line of JSON.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../ports/posix/noctule_posix.h"
#include "board.h"

static int64_t cpu_ns(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000000) +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * INT64_C(1000);
}

/* Of the whole process, at its largest. */
static long memory_kib(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void print_counts(const board_t *board, float idle_share, uint32_t opened, long grown_kib) {
    char text[BOARD_DESCRIPTION_BYTES];
    board_describe(board, text);
    printf("{%s,\"opened\":%u,\"memory_growth_kib\":%ld,\"idle_share\":%.4f}\n", text, opened, grown_kib,
           (double)idle_share);
}

int main(int argc, char **argv) {
    static board_t board;
    noctule_posix_t line;
    const bool serial = argc > 3 && strcmp(argv[1], "serial") == 0, udp = argc > 3 && strcmp(argv[1], "udp") == 0;
    const uint32_t number = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
    const uint32_t rate_hz = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 100;
    const int64_t seconds = argc > 5 ? strtol(argv[5], NULL, 10) : 0;
    const uint32_t key = argc > 6 ? (uint32_t)strtoul(argv[6], NULL, 10) : 0x4E43;
    const int64_t start_ns = noctule_posix_now_ns();
    int64_t report_ns = start_ns, report_cpu_ns = cpu_ns();
    float idle_share = 1.0F;
    long settled_kib = 0;
    noctule_client_error_t error;
    if (!serial && !udp) {
        fprintf(stderr, "say how: board_posix serial DEVICE BAUD | udp ADDRESS PORT, then [HZ [SECONDS [KEY]]]\n");
        return 2;
    }
    if (serial ? noctule_posix_open_serial(&line, argv[2], number) != 0
               : noctule_posix_open_udp(&line, argv[2], (uint16_t)number) != 0) {
        fprintf(stderr, "cannot open %s with %u: %s\n", argv[2], number, strerror(errno));
        return 2;
    }
    error = board_init(&board, serial ? NOCTULE_SERIAL : NOCTULE_DATAGRAM, key, rate_hz);
    if (error != NOCTULE_CLIENT_OK) {
        fprintf(stderr, "%s\n", noctule_client_error_text(error));
        return 2;
    }
    while (noctule_client_state(&board.client) != NOCTULE_CLOSED) {
        const int64_t now_ns = noctule_posix_now_ns();
        const bool closing = noctule_client_state(&board.client) == NOCTULE_CLOSING;
        if (!closing && board_step(&board, now_ns)) {
            const int64_t used_ns = cpu_ns();
            idle_share = 1.0F - (float)(used_ns - report_cpu_ns) / (float)(now_ns - report_ns);
            report_ns = now_ns;
            report_cpu_ns = used_ns;
            board_report(&board, now_ns, idle_share, 0);
            /* By then every page was touched once. */
            if (board.reports == 2) settled_kib = memory_kib();
        }
        if (seconds > 0 && now_ns - start_ns >= seconds * INT64_C(1000000000)) board_end(&board, now_ns);
        noctule_posix_turn(&line, &board.client, board.transmit, sizeof board.transmit,
                           closing ? INT64_MAX : board_next_timeout(&board));
    }
    idle_share = 1.0F - (float)cpu_ns() / (float)(noctule_posix_now_ns() - start_ns);
    print_counts(&board, idle_share, line.opened, settled_kib > 0 ? memory_kib() - settled_kib : 0);
    noctule_posix_close(&line);
    return 0;
}
