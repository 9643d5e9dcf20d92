/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * See FreeRTOS.h beside it.
 */
#ifndef INC_TASK_H
#define INC_TASK_H

#include "FreeRTOS.h"

typedef struct tskTaskControlBlock *TaskHandle_t;

typedef struct {
    const char *pcTaskName;
    configRUN_TIME_COUNTER_TYPE ulRunTimeCounter;
    uint16_t usStackHighWaterMark; /* in words */
} TaskStatus_t;

TaskHandle_t xTaskGetCurrentTaskHandle(void);
uint32_t ulTaskNotifyTake(BaseType_t clear, TickType_t ticks);
void vTaskNotifyGiveFromISR(TaskHandle_t task, BaseType_t *higher_was_woken);
UBaseType_t uxTaskGetSystemState(TaskStatus_t *tasks, UBaseType_t room, configRUN_TIME_COUNTER_TYPE *total);

#endif
