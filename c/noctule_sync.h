/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * An estimate of another clock: its offset, its drift, and how wrong both may be.
 *
 * C99, no heap, no globals, no recursion, no floating point in `bounded`. The caller owns all memory; time is an
 * argument. Both estimators give bit for bit what the Rust crate noctule-time-sync gives; why they are made as they
 * are is in docs/design/time-sync.md.
 *
 * Everywhere offset = remote - local, and all times are nanoseconds of the clock that took them.
 */
#ifndef NOCTULE_SYNC_H
#define NOCTULE_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One request and its reply. */
typedef struct {
    int64_t t1_ns; /* The request leaves, local clock. */
    int64_t t2_ns; /* The request arrives, remote clock. */
    int64_t t3_ns; /* The reply leaves, remote clock. */
    int64_t t4_ns; /* The reply arrives, local clock. */
} noctule_exchange_t;

/* Result of handling an exchange. Zero: used. Negative: why not; the estimator stays usable. */
typedef enum {
    NOCTULE_SYNC_USED = 0,
    NOCTULE_SYNC_OUT_OF_RANGE = -1,        /* A stamp is 146 years or more from the origin of its clock. */
    NOCTULE_SYNC_CLOCK_WENT_BACK = -2,     /* The later stamp of one clock is the earlier reading. */
    NOCTULE_SYNC_NEGATIVE_ROUND_TRIP = -3, /* Shorter than the known wire time: causality forbids it. */
    NOCTULE_SYNC_OUT_OF_ORDER = -4,        /* The reply arrived before one that was already used. */
    NOCTULE_SYNC_TOO_LONG = -5,            /* The exchange lasted too long for this estimator. */
    NOCTULE_SYNC_CONTRADICTION = -6        /* It disagrees with the estimate; which is wrong is not yet known. */
} noctule_sync_verdict_t;

/* How far an estimator has come. */
typedef enum {
    NOCTULE_SYNC_ACQUIRING = 0, /* Usable, but drift is not settled. */
    NOCTULE_SYNC_LOCKED = 1,
    NOCTULE_SYNC_STEPPED = 2, /* The last exchange contradicts the estimate. */
    NOCTULE_SYNC_STALE = 3    /* No exchange for so long that this is only an extrapolation. */
} noctule_sync_state_t;

/* Estimate of the other clock at one moment. */
typedef struct {
    int64_t offset_ns;
    int64_t drift_2_46; /* Relative drift in parts per 2^46: 70368744 is one ppm. */
    int64_t bound_ns;   /* Proven: the truth is within this of offset_ns. -1: nothing is proven now. */
    int64_t sigma_ns;   /* Standard error if the least delays each way are equal. -1: unknown. */
    noctule_sync_state_t state;
} noctule_estimate_t;

/* ---- bounded: a proven interval, and the most likely value inside it ---- */

/* Premises of `bounded`. Zero in a field means its default. */
typedef struct {
    uint32_t max_drift_ppm;        /* The clocks never drift apart faster; the premise of bounds. Default 200, at most 10000. */
    int64_t wire_forward_ns;       /* The request spends at least this long on the wire. Default 0. */
    int64_t wire_back_ns;          /* The reply spends at least this long on the wire. Default 0. */
    int64_t local_resolution_ns;   /* Step in which the local clock counts. Default 1. */
    int64_t remote_resolution_ns;  /* Step in which the remote clock counts. Default 1. */
    int64_t stale_after_ns;        /* Stale without an exchange for this long. Default 10 s. */
    bool distrust_past;            /* Prove each bound from the last exchange alone, so that no step can hide. Default false. */
} noctule_bounded_config_t;

/* Private from here to noctule_bounded_t. */
typedef struct { int64_t lo_ns, hi_ns; } noctule_interval_t;
typedef struct { noctule_interval_t recent, older; int64_t age_ns; } noctule_window_t;
typedef struct { int64_t offset, drift, p00, p01, p11; } noctule_kalman_t;
typedef struct { int64_t ns; uint32_t seen; } noctule_mean_t;
typedef struct { int64_t at_ns, at_most_ns, at_least_ns, mean_ns; uint32_t count; } noctule_edges_t;
typedef struct { int64_t first_ns, last_ns, slope, at_most_ns, at_least_ns, sum_ns; uint32_t count; } noctule_block_t;

/* The estimator. Make it with noctule_bounded_init; do not look inside. */
typedef struct {
    noctule_bounded_config_t config;
    bool has_lock, has_relocked, withdrawn, has_block, has_contradiction;
    uint8_t active, edges_known;
    uint32_t block_target, blocks_at_target, floor_blocks, contradiction_count;
    int64_t anchor_ns, last_ns, agreed_ns, relocked_ns;
    noctule_window_t window;
    noctule_kalman_t filters[3];
    int64_t scores[3];
    int64_t filter_at_ns, noise_scale;
    int64_t floor_recent_ns, floor_older_ns, second_recent_ns, second_older_ns;
    noctule_edges_t before, older;
    noctule_mean_t forward, back, middle, mean, usual_excess;
    noctule_block_t block;
    noctule_window_t contradiction_window;
    noctule_block_t contradiction_block;
    uint32_t accepted, rejected, relocks;
} noctule_bounded_t;

/* Makes an estimator that has seen nothing. `config` may be NULL for all defaults. */
void noctule_bounded_init(noctule_bounded_t *self, const noctule_bounded_config_t *config);

/* Takes in one exchange, in the order in which the replies arrived. */
noctule_sync_verdict_t noctule_bounded_handle_exchange(noctule_bounded_t *self, const noctule_exchange_t *exchange);

/* The estimate at local time `now_ns`. False before the first usable exchange. */
bool noctule_bounded_estimate(const noctule_bounded_t *self, int64_t now_ns, noctule_estimate_t *estimate);

/* ---- ema: the autopilot filter ---- */

typedef enum {
    NOCTULE_EMA_PX4 = 0,   /* Microseconds, gates 10 ms and 100 ms, reset on the 6th outlier in a row. */
    NOCTULE_EMA_MAVROS = 1 /* Nanoseconds, gates 10 ms and 10 ms, reset on the 11th, gains in single precision. */
} noctule_ema_preset_t;

/* The filter. Needs IEEE 754 arithmetic without contraction: compile with -ffp-contract=off. */
typedef struct {
    noctule_ema_preset_t preset;
    double offset; /* local - remote, in the preset's unit */
    double skew;   /* change of offset per accepted sample */
    uint32_t sequence, high_deviation_in_a_row;
    bool has_last;
    int64_t last_t4_ns, interval_ns;
    uint32_t accepted, rejected, relocks;
} noctule_ema_t;

/* Makes a filter that has seen nothing. */
void noctule_ema_init(noctule_ema_t *self, noctule_ema_preset_t preset);

/* Takes in one exchange. */
noctule_sync_verdict_t noctule_ema_handle_exchange(noctule_ema_t *self, const noctule_exchange_t *exchange);

/* The filter's value as it stands, not extrapolated. False before the first sample. */
bool noctule_ema_estimate(const noctule_ema_t *self, noctule_estimate_t *estimate);

#ifdef __cplusplus
}
#endif
#endif
