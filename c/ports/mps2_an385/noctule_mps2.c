/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Registers: Arm Cortex-M System Design Kit, Technical Reference Manual (DDI 0479), UART and timer; interrupt numbers:
 * application note AN385, table 3-6.
 */
#include "noctule_mps2.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define UART_DATA REGISTER(0x40004000)
#define UART_STATE REGISTER(0x40004004)
#define UART_CONTROL REGISTER(0x40004008)
#define UART_INTERRUPT REGISTER(0x4000400C)
#define UART_DIVISOR REGISTER(0x40004010)
#define CLOCK_CONTROL REGISTER(0x40000000)
#define CLOCK_VALUE REGISTER(0x40000004)
#define CLOCK_RELOAD REGISTER(0x40000008)
#define ALARM_CONTROL REGISTER(0x40001000)
#define ALARM_VALUE REGISTER(0x40001004)
#define ALARM_RELOAD REGISTER(0x40001008)
#define ALARM_INTERRUPT REGISTER(0x4000100C)
#define INTERRUPT_ENABLE REGISTER(0xE000E100)
#define MASK_INTERRUPTS() __asm volatile("cpsid i" ::: "memory")
#define ALLOW_INTERRUPTS() __asm volatile("cpsie i" ::: "memory")

enum { TRANSMITTER_FULL = 1, RECEIVER_FULL = 2, RECEIVER_OVERRUN = 8 };
enum { UART_ENABLE = 1 | 2 | 4 | 8 };
enum { TIMER_ENABLE = 1, TIMER_INTERRUPT = 8 };
enum { UART_RECEIVED = 0, UART_SENT = 1, ALARM_RANG = 9 };
enum { CLOCK_HZ = 25000000, TICK_NS = 40 };

/* The port's own state, not the client's: interrupts have no argument. */
static volatile uint8_t received[MPS2_RECEIVE_BYTES];
static volatile uint32_t received_begin, received_end, overruns;
static volatile bool rang;
static const uint8_t *volatile sending, *volatile sending_end;
static uint64_t clock_ticks, idle_ticks;

extern uint32_t mps2_stack_bottom[], mps2_stack_top[];

void mps2_uart_received(void) {
    UART_INTERRUPT = RECEIVER_FULL;
    if (UART_STATE & RECEIVER_OVERRUN) {
        UART_STATE = RECEIVER_OVERRUN;
        overruns++;
    }
    while (UART_STATE & RECEIVER_FULL) {
        const uint8_t byte = (uint8_t)UART_DATA;
        if (received_end - received_begin == MPS2_RECEIVE_BYTES)
            overruns++;
        else
            received[received_end++ % MPS2_RECEIVE_BYTES] = byte;
    }
}

static void send_next(void) {
    while (sending != sending_end && !(UART_STATE & TRANSMITTER_FULL)) UART_DATA = *sending++;
}

void mps2_uart_sent(void) {
    UART_INTERRUPT = TRANSMITTER_FULL;
    send_next();
}

void mps2_alarm_rang(void) {
    ALARM_INTERRUPT = 1;
    ALARM_CONTROL = 0;
    rang = true;
}

void mps2_init(uint32_t baud) {
    CLOCK_RELOAD = CLOCK_VALUE = UINT32_MAX;
    CLOCK_CONTROL = TIMER_ENABLE;
    UART_DIVISOR = CLOCK_HZ / baud;
    UART_CONTROL = UART_ENABLE;
    INTERRUPT_ENABLE = 1u << UART_RECEIVED | 1u << UART_SENT | 1u << ALARM_RANG;
}

/* The counter has 32 bits and counts down; the rest is kept here. */
static uint64_t ticks(void) {
    const uint32_t low = UINT32_MAX - CLOCK_VALUE;
    uint64_t high = clock_ticks >> 32;
    if (low < (uint32_t)clock_ticks) high++;
    clock_ticks = high << 32 | low;
    return clock_ticks;
}

int64_t mps2_now_ns(void) { return (int64_t)(ticks() * TICK_NS); }
int64_t mps2_idle_ns(void) { return (int64_t)(idle_ticks * TICK_NS); }
uint32_t mps2_overruns(void) { return overruns; }

static void send_due(noctule_client_t *client, uint8_t *out, size_t out_bytes) {
    const int32_t length =
        sending == sending_end ? noctule_client_poll_transmit(client, mps2_now_ns(), out, out_bytes) : 0;
    if (length <= 0) return;
    MASK_INTERRUPTS();
    sending = out;
    sending_end = out + length;
    send_next();
    ALLOW_INTERRUPTS();
}

/* True if that completed a message. */
static bool hand_over(noctule_client_t *client) {
    uint8_t bytes[64];
    bool handled = false;
    while (received_begin != received_end) {
        size_t count = 0;
        while (received_begin != received_end && count < sizeof bytes)
            bytes[count++] = received[received_begin++ % MPS2_RECEIVE_BYTES];
        if (noctule_client_handle_bytes(client, bytes, count, mps2_now_ns())) handled = true;
    }
    return handled;
}

static void set_alarm(int64_t wake_ns) {
    const int64_t now_ns = mps2_now_ns();
    const int64_t pause_ns = wake_ns > now_ns ? wake_ns - now_ns : 0;
    ALARM_CONTROL = 0;
    rang = pause_ns == 0;
    /* Longer pauses end early; the loop sleeps again. */
    ALARM_RELOAD = ALARM_VALUE = pause_ns > INT64_C(1000000000) ? CLOCK_HZ : (uint32_t)pause_ns / TICK_NS + 1;
    if (!rang) ALARM_CONTROL = TIMER_ENABLE | TIMER_INTERRUPT;
}

void mps2_turn(noctule_client_t *client, uint8_t *out, size_t out_bytes, int64_t wake_ns) {
    bool was_sending, handled;
    send_due(client, out, out_bytes);
    was_sending = sending != sending_end;
    /* Bytes that are due wait for the line: to wake for them now would be to spin. */
    if (!was_sending && noctule_client_next_timeout(client, mps2_now_ns()) < wake_ns)
        wake_ns = noctule_client_next_timeout(client, mps2_now_ns());
    set_alarm(wake_ns);
    /* One byte of many is no reason to go round the program's loop. */
    do {
        /* With interrupts masked WFI still wakes, and nothing can come between the look and the sleep. */
        MASK_INTERRUPTS();
        if (received_begin == received_end && !rang && !(was_sending && sending == sending_end)) {
            const uint64_t before = ticks();
            __asm volatile("dsb\n wfi" ::: "memory");
            idle_ticks += ticks() - before;
        }
        ALLOW_INTERRUPTS();
        handled = hand_over(client);
    } while (!handled && !rang && !(was_sending && sending == sending_end));
}

uint32_t mps2_stack_unused_bytes(void) {
    const uint32_t *at = mps2_stack_bottom;
    while (at < mps2_stack_top && *at == 0xA5A5A5A5) at++;
    return (uint32_t)((const uint8_t *)at - (const uint8_t *)mps2_stack_bottom);
}

static void semihosting(uint32_t operation, const void *argument) {
    register uint32_t r0 __asm("r0") = operation;
    register const void *r1 __asm("r1") = argument;
    __asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

void mps2_print(const char *text) { semihosting(0x04, text); }

void mps2_exit(int code) {
    const uint32_t block[2] = {0x20026, (uint32_t)code};
    semihosting(0x20, block);
}
