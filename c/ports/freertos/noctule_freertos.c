/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "noctule_freertos.h"

#include <string.h>

#include "../task_statistics.h"

#define TICK_NS (INT64_C(1000000000) / configTICK_RATE_HZ)

void noctule_freertos_init(noctule_freertos_t *self, const noctule_freertos_board_t *board, uint8_t *transmit,
                           size_t transmit_bytes) {
    memset(self, 0, sizeof *self);
    self->board = *board;
    self->transmit = transmit;
    self->transmit_bytes = transmit_bytes;
    self->task = xTaskGetCurrentTaskHandle();
}

static void wake_from_isr(noctule_freertos_t *self) {
    BaseType_t higher_was_woken = pdFALSE;
    vTaskNotifyGiveFromISR(self->task, &higher_was_woken);
    portYIELD_FROM_ISR(higher_was_woken);
}

void noctule_freertos_received_from_isr(noctule_freertos_t *self, const uint8_t *bytes, size_t length) {
    for (; length > 0; length--, bytes++) {
        if (self->received_end - self->received_begin == NOCTULE_FREERTOS_RECEIVE_BYTES)
            self->overruns++;
        else
            self->received[self->received_end++ % NOCTULE_FREERTOS_RECEIVE_BYTES] = *bytes;
    }
    wake_from_isr(self);
}

void noctule_freertos_sent_from_isr(noctule_freertos_t *self) {
    self->sending = false;
    wake_from_isr(self);
}

static void hand_over(noctule_freertos_t *self, noctule_client_t *client) {
    uint8_t bytes[64];
    while (self->received_begin != self->received_end) {
        size_t count = 0;
        while (self->received_begin != self->received_end && count < sizeof bytes)
            bytes[count++] = self->received[self->received_begin++ % NOCTULE_FREERTOS_RECEIVE_BYTES];
        noctule_client_handle_bytes(client, bytes, count, self->board.now_ns(self->board.context));
    }
}

void noctule_freertos_turn(noctule_freertos_t *self, noctule_client_t *client, int64_t wake_ns) {
    int64_t now_ns = self->board.now_ns(self->board.context), pause_ns;
    if (!self->sending) {
        const int32_t length = noctule_client_poll_transmit(client, now_ns, self->transmit, self->transmit_bytes);
        if (length > 0) {
            self->sending = true;
            self->board.send(self->board.context, self->transmit, (size_t)length);
        } else if (noctule_client_next_timeout(client, now_ns) < wake_ns) {
            wake_ns = noctule_client_next_timeout(client, now_ns);
        }
    }
    now_ns = self->board.now_ns(self->board.context);
    pause_ns = wake_ns > now_ns ? wake_ns - now_ns : 0;
    if (pause_ns > INT64_C(1000000000)) pause_ns = INT64_C(1000000000);
    /* Rounded up: to wake before the time would be to go round and round until it has come. */
    ulTaskNotifyTake(pdTRUE, (TickType_t)(((uint32_t)pause_ns + (uint32_t)TICK_NS - 1) / (uint32_t)TICK_NS));
    hand_over(self, client);
}

noctule_client_error_t noctule_freertos_report(noctule_freertos_t *self, noctule_client_t *client, uint16_t endpoint) {
    TaskStatus_t found[NOCTULE_FREERTOS_TASKS_MAX];
    noctule_msgs_TaskStatus tasks[NOCTULE_FREERTOS_TASKS_MAX];
    noctule_msgs_TaskStatistics report;
    uint8_t bytes[40 + NOCTULE_FREERTOS_TASKS_MAX * (configMAX_TASK_NAME_LEN + 20)];
    noctule_cdr_writer_t cdr = noctule_cdr_writer(bytes, sizeof bytes);
    configRUN_TIME_COUNTER_TYPE total = 0;
    const int64_t now_ns = self->board.now_ns(self->board.context);
    /* Zero if there are more tasks than fit. */
    const UBaseType_t count = uxTaskGetSystemState(found, NOCTULE_FREERTOS_TASKS_MAX, &total);
    float idle_share = 0.0F;
    UBaseType_t i;
    for (i = 0; i < count; i++) {
        tasks[i].name.text = found[i].pcTaskName;
        tasks[i].name.length = (uint32_t)strlen(found[i].pcTaskName);
        tasks[i].cpu_share = total > 0 ? (float)found[i].ulRunTimeCounter / (float)total : 0.0F;
        tasks[i].stack_unused_bytes = (uint32_t)(found[i].usStackHighWaterMark * sizeof(StackType_t));
        if (strcmp(found[i].pcTaskName, configIDLE_TASK_NAME) == 0) idle_share = tasks[i].cpu_share;
    }
    report = noctule_task_statistics(now_ns, idle_share, noctule_client_counts(client), tasks, (uint32_t)count);
    noctule_msgs_TaskStatistics_write(&cdr, &report);
    if (cdr.failed) return NOCTULE_CLIENT_TOO_LARGE;
    return noctule_client_publish(client, endpoint, bytes, cdr.length, now_ns);
}
