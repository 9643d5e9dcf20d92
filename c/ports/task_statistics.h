/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What a controller says of itself once a second: how idle it is, how near its stacks are to their ends, what its line
 * carried. The type is noctule_msgs/msg/TaskStatistics (msg/TaskStatistics.msg); with bare metal there is one task.
 */
#ifndef NOCTULE_TASK_STATISTICS_H
#define NOCTULE_TASK_STATISTICS_H

#include "../noctule_client.h"

#define NOCTULE_TASK_STATISTICS_TYPE "noctule_msgs::msg::dds_::TaskStatistics_"

typedef struct {
    const char *name;
    float cpu_share;             /* Of one core, since the report before: 0 to 1. */
    uint32_t stack_unused_bytes; /* Never yet used: the least there ever was. */
} noctule_task_t;

/* Writes a report as CDR. False if it has no room. */
static inline bool noctule_task_statistics_write(noctule_cdr_writer_t *cdr, int64_t now_ns, float idle_share,
                                                 const noctule_client_counts_t *counts, const noctule_task_t *tasks,
                                                 uint32_t task_count) {
    uint32_t i;
    noctule_cdr_put_u64(cdr, (uint64_t)now_ns);
    noctule_cdr_put_f32(cdr, idle_share);
    noctule_cdr_put_u32(cdr, counts->bytes_in);
    noctule_cdr_put_u32(cdr, counts->bytes_out);
    noctule_cdr_put_u32(cdr, counts->frame_errors + counts->malformed);
    noctule_cdr_put_u32(cdr, counts->lost_messages);
    noctule_cdr_put_u32(cdr, counts->resent_messages);
    noctule_cdr_put_u32(cdr, counts->sessions);
    noctule_cdr_put_u32(cdr, task_count);
    for (i = 0; i < task_count; i++) {
        noctule_cdr_put_string(cdr, tasks[i].name);
        noctule_cdr_put_f32(cdr, tasks[i].cpu_share);
        noctule_cdr_put_u32(cdr, tasks[i].stack_unused_bytes);
    }
    return !cdr->failed;
}

#endif
