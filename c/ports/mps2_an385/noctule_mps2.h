/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The client on a bare Cortex-M3: Arm's MPS2 board with image AN385, which QEMU has as `mps2-an385`. UART 0 is the line,
 * driven by interrupts both ways; timer 0 counts time, timer 1 wakes; between events the core sleeps in WFI, and how long it
 * slept is counted. A model for other boards: replace this file, keep its functions.
 */
#ifndef NOCTULE_MPS2_H
#define NOCTULE_MPS2_H

#include "../../noctule_client.h"

/* Bytes that may wait between an interrupt and the program; more are dropped and counted. A power of two. */
#ifndef MPS2_RECEIVE_BYTES
#define MPS2_RECEIVE_BYTES 1024
#endif

/* Starts timers and UART. The divisor is that of a real board; QEMU's line has no speed. */
void mps2_init(uint32_t baud);

/* Time since mps2_init. To be called at least every two minutes. */
int64_t mps2_now_ns(void);

/* One turn: sends what is due if the line is free, sleeps until a message has come, the line is free again, the
 * client has something to do, or `wake_ns`, when the program has. `out` is the port's from one turn to the next. */
void mps2_turn(noctule_client_t *client, uint8_t *out, size_t out_bytes, int64_t wake_ns);

/* Time slept since mps2_init. */
int64_t mps2_idle_ns(void);

/* Bytes that came too fast. */
uint32_t mps2_overruns(void);

/* Bytes of the stack that were never used. */
uint32_t mps2_stack_unused_bytes(void);

/* Through the debugger or QEMU (semihosting): a line of text; the end. */
void mps2_print(const char *text);
void mps2_exit(int code);

#endif
