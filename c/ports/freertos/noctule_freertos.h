/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The client as a FreeRTOS task. It sleeps in a task notification until its UART's interrupts give it one, or until
 * something is due; it needs no other object of the kernel. The UART is the program's: its driver calls the two functions
 * `_from_isr`, and starts a transmission when it is requested.
 *
 * Calls of FreeRTOS (v9 or later): xTaskGetCurrentTaskHandle, ulTaskNotifyTake, vTaskNotifyGiveFromISR,
 * portYIELD_FROM_ISR, and uxTaskGetSystemState for the report.
 */
#ifndef NOCTULE_FREERTOS_H
#define NOCTULE_FREERTOS_H

#include "FreeRTOS.h"
#include "task.h"

#include "../../noctule_client.h"

/* Bytes that may wait between the interrupt and the task; more are dropped and counted. A power of two. */
#ifndef NOCTULE_FREERTOS_RECEIVE_BYTES
#define NOCTULE_FREERTOS_RECEIVE_BYTES 512
#endif
/* Tasks a report names. */
#ifndef NOCTULE_FREERTOS_TASKS_MAX
#define NOCTULE_FREERTOS_TASKS_MAX 12
#endif

/* Functions that the board provides. */
typedef struct {
    /* A clock in nanoseconds that never goes back. Of a timer, not of the tick: a tick of 1 ms is the bound of every age. */
    int64_t (*now_ns)(void *context);
    /* Starts to send `length` bytes, by interrupt or DMA, and returns. They hold until noctule_freertos_sent_from_isr. */
    void (*send)(void *context, const uint8_t *bytes, size_t length);
    void *context;
} noctule_freertos_board_t;

typedef struct {
    noctule_freertos_board_t board;
    TaskHandle_t task;
    uint8_t *transmit;
    size_t transmit_bytes;
    volatile bool sending;
    volatile uint32_t received_begin, received_end, overruns;
    volatile uint8_t received[NOCTULE_FREERTOS_RECEIVE_BYTES];
} noctule_freertos_t;

/* To be called by the task that will run the client, before its interrupts are on. */
void noctule_freertos_init(noctule_freertos_t *self, const noctule_freertos_board_t *board, uint8_t *transmit,
                           size_t transmit_bytes);

/* Bytes came, one or, by DMA, many. */
void noctule_freertos_received_from_isr(noctule_freertos_t *self, const uint8_t *bytes, size_t length);

/* All bytes of the last `send` are sent. */
void noctule_freertos_sent_from_isr(noctule_freertos_t *self);

/* One turn: sends what is due if the line is free, sleeps until an interrupt or `wake_ns`, hands over what came. */
void noctule_freertos_turn(noctule_freertos_t *self, noctule_client_t *client, int64_t wake_ns);

/* Publishes a report on all tasks (ports/task_statistics.h; to be compiled with generated/c/noctule_msgs.c) on `endpoint`. The shares are those since boot, of the kernel's
 * run-time counter; configUSE_TRACE_FACILITY and configGENERATE_RUN_TIME_STATS must be 1. */
noctule_client_error_t noctule_freertos_report(noctule_freertos_t *self, noctule_client_t *client, uint16_t endpoint);

#endif
