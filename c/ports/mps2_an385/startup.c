/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * From reset to main: paints the stack, so that its deepest use can be seen, copies .data and clears .bss.
 */
#include <stdint.h>
#include <string.h>

extern uint32_t mps2_stack_top[];
extern uint8_t mps2_data_begin[], mps2_data_end[], mps2_data_load[], mps2_bss_begin[], mps2_bss_end[];

int main(void);
void mps2_uart_received(void);
void mps2_uart_sent(void);
void mps2_alarm_rang(void);
void mps2_reset(void);
void mps2_start(void);
void mps2_halt(void);

/* Nothing may lie on the stack while it is painted. */
__attribute__((naked)) void mps2_reset(void) {
    __asm volatile("ldr r0, =mps2_stack_bottom\n"
                   "ldr r1, =mps2_stack_top\n"
                   "ldr r2, =0xA5A5A5A5\n"
                   "1: stmia r0!, {r2}\n"
                   "cmp r0, r1\n"
                   "blo 1b\n"
                   "b mps2_start\n");
}

__attribute__((used)) void mps2_start(void) {
    memcpy(mps2_data_begin, mps2_data_load, (size_t)(mps2_data_end - mps2_data_begin));
    memset(mps2_bss_begin, 0, (size_t)(mps2_bss_end - mps2_bss_begin));
    main();
    mps2_halt();
}

void mps2_halt(void) {
    for (;;) __asm volatile("wfi");
}

typedef void (*handler_t)(void);

__attribute__((section(".vectors"), used)) static const struct {
    uint32_t *stack;
    handler_t handlers[15 + 10];
} vectors = {mps2_stack_top,
             {mps2_reset, mps2_halt, mps2_halt, mps2_halt, mps2_halt, mps2_halt, 0, 0, 0, 0, mps2_halt, mps2_halt, 0,
              mps2_halt, mps2_halt, /* UART 0 */ mps2_uart_received, mps2_uart_sent, /* not enabled */ mps2_halt,
              mps2_halt, mps2_halt, mps2_halt, mps2_halt, mps2_halt, mps2_halt, /* timer 1 */ mps2_alarm_rang}};
