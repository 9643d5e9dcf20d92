/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Report of a controller, once a second: how idle it is, how near its stacks are to their ends, what its line
 * carried. The type is noctule_msgs/msg/TaskStatistics, generated of c/topics.toml; with bare metal there is one task.
 */
#ifndef NOCTULE_TASK_STATISTICS_H
#define NOCTULE_TASK_STATISTICS_H

#include "../generated/c/noctule_msgs.h"
#include "../noctule_client.h"

/* A report; `tasks` stay the caller's. noctule_msgs_TaskStatistics_write makes CDR of it. */
static inline noctule_msgs_TaskStatistics noctule_task_statistics(int64_t now_ns, float idle_share,
                                                                  const noctule_client_counts_t *counts,
                                                                  const noctule_msgs_TaskStatus *tasks, uint32_t task_count) {
    noctule_msgs_TaskStatistics report;
    report.time_ns = (uint64_t)now_ns;
    report.idle_share = idle_share;
    report.bytes_in = counts->bytes_in;
    report.bytes_out = counts->bytes_out;
    report.errors = counts->frame_errors + counts->malformed;
    report.lost_messages = counts->lost_messages;
    report.resent_messages = counts->resent_messages;
    report.sessions = counts->sessions;
    report.tasks.count = task_count;
    report.tasks.data = tasks;
    return report;
}

#endif
