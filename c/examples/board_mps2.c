/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The board of board.h on a bare Cortex-M3. RATE_HZ: its counters' rate. SECONDS: for a test, it takes leave after so many
 * and has the emulator print its counts.
 */
#include "../ports/mps2_an385/noctule_mps2.h"
#include "board.h"

#ifndef RATE_HZ
#define RATE_HZ 100
#endif

#ifndef SECONDS
#define SECONDS 0
#endif

static board_t board;

static void print_counts(void) {
    static char text[BOARD_DESCRIPTION_BYTES];
    board_describe(&board, text);
    mps2_print("{");
    mps2_print(text);
    mps2_print("}\n");
}

int main(void) {
    int64_t report_ns = 0, report_idle_ns = 0;
    mps2_init(921600);
    if (board_init(&board, NOCTULE_SERIAL, 0x4E43, RATE_HZ) != NOCTULE_CLIENT_OK) return 1;
    while (noctule_client_state(&board.client) != NOCTULE_CLOSED) {
        const int64_t now_ns = mps2_now_ns();
        const bool is_over = SECONDS > 0 && now_ns >= SECONDS * INT64_C(1000000000);
        if (is_over) board_end(&board, now_ns);
        if (!is_over && board_step(&board, now_ns)) {
            const int64_t idle_ns = mps2_idle_ns();
            const int32_t idle_us = (int32_t)((idle_ns - report_idle_ns) / 1000);
            board_report(&board, now_ns, (float)idle_us / (float)(int32_t)((now_ns - report_ns) / 1000),
                         mps2_stack_unused_bytes());
            report_ns = now_ns;
            report_idle_ns = idle_ns;
        }
        mps2_turn(&board.client, board.transmit, sizeof board.transmit, board_next_timeout(&board));
    }
    print_counts();
    mps2_exit(0);
}
