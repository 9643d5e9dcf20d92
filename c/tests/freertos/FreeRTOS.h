/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * As much of FreeRTOS's interface as ports/freertos uses, declared so that the port can be compiled without the kernel.
 * Types as in its Cortex-M ports. Not for programs: take the kernel's own headers.
 */
#ifndef FREERTOS_H
#define FREERTOS_H

#include <stdint.h>

typedef long BaseType_t;
typedef unsigned long UBaseType_t;
typedef uint32_t TickType_t;
typedef uint32_t StackType_t;

#define pdFALSE ((BaseType_t)0)
#define pdTRUE ((BaseType_t)1)
#define configTICK_RATE_HZ 1000
#define configMAX_TASK_NAME_LEN 16
#define configIDLE_TASK_NAME "IDLE"
#define configRUN_TIME_COUNTER_TYPE uint32_t
#define portYIELD_FROM_ISR(woken) ((void)(woken))

#endif
