/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The board of board.h on a bare Cortex-M3. RATE_HZ: its counters' rate.
 */
#include "../ports/mps2_an385/noctule_mps2.h"
#include "board.h"

#ifndef RATE_HZ
#define RATE_HZ 100
#endif

static board_t board;

int main(void) {
    int64_t report_ns = 0, report_idle_ns = 0;
    mps2_init(921600);
    if (board_init(&board, NOCTULE_SERIAL, 0x4E43, RATE_HZ) != NOCTULE_CLIENT_OK) return 1;
    for (;;) {
        const int64_t now_ns = mps2_now_ns();
        if (board_step(&board, now_ns)) {
            const int64_t idle_ns = mps2_idle_ns();
            const int32_t idle_us = (int32_t)((idle_ns - report_idle_ns) / 1000);
            board_report(&board, now_ns, (float)idle_us / (float)(int32_t)((now_ns - report_ns) / 1000),
                         mps2_stack_unused_bytes());
            report_ns = now_ns;
            report_idle_ns = idle_ns;
        }
        mps2_turn(&board.client, board.transmit, sizeof board.transmit, board_next_timeout(&board));
    }
}
