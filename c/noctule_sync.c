/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Twin of the Rust crate noctule-time-sync. Reasons and sources stand there, function by function; here stands what
 * C needs beside: every sum that may leave the range saturates, right shifts of negative numbers are spelled out, and
 * products are built from 32-bit halves because a Cortex-M3 has nothing wider.
 */
#include "noctule_sync.h"

#include <stddef.h>
#include <string.h>

#define STAMP_LIMIT_NS (INT64_C(1) << 62)
#define LONGEST_GAP_NS (INT64_C(1) << 40)
#define CONTRADICTIONS_TO_RELOCK 3u
#define PPM INT64_C(70368745)
#define PLAUSIBLE_RATE (2000 * PPM)
#define RELOCK_AGAIN_NS INT64_C(10000000000)
#define SLOPE_ERROR_NS 3000
#define STAMP_NOISE_NS 50
#define ROOT_2 92682
#define BUCKET_NS INT64_C(4000000000)
#define LARGEST_BLOCK 32u
#define LONGEST_BLOCK_NS INT64_C(4000000000)
#define FLOOR_BLOCKS 64u
#define CLEANER 5
#define CLEANER_EARLY 16
#define SIDES_SETTLED 4u
#define MEAN_SETTLED 12u
#define LINE_RATIO_MIN (INT64_C(1) << 15)
#define LINE_RATIO_MAX (INT64_C(1) << 17)
#define OFFSET_BITS 16
#define VARIANCE_BITS 8
#define TICK_BITS 20
#define P00_MAX (INT64_C(1) << 60)
#define P01_MAX (INT64_C(1) << 59)
#define P11_MAX (INT64_C(1) << 58)
#define P00_MIN (INT64_C(1) << VARIANCE_BITS)
#define P11_MIN 1
#define DRIFT_MAX (INT64_C(1) << 40)
#define RATE_MAX (INT64_C(1) << 37)
#define ONE 256
#define FULL_TILT 65536

static const int64_t wander[3] = {INT64_C(730000), INT64_C(73000000), INT64_C(7300000000)};

/* ---- arithmetic ---- */

/* On a 32-bit processor two registers hold one number, and a call costs less flash than a comparison; -Os does not see
 * that of functions so short. Which ones gain was found by trying each. */
#if defined __GNUC__ && defined __OPTIMIZE_SIZE__
#define OUTLINED __attribute__((noinline))
#else
#define OUTLINED
#endif

static OUTLINED int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static OUTLINED int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
static OUTLINED int64_t clamp64(int64_t a, int64_t lo, int64_t hi) { return min64(max64(a, lo), hi); }

static OUTLINED int64_t add_sat(int64_t a, int64_t b) {
    if (b > 0 && a > INT64_MAX - b) return INT64_MAX;
    if (b < 0 && a < INT64_MIN - b) return INT64_MIN;
    return a + b;
}

static int64_t sub_sat(int64_t a, int64_t b) {
    if (b < 0 && a > INT64_MAX + b) return INT64_MAX;
    if (b > 0 && a < INT64_MIN + b) return INT64_MIN;
    return a - b;
}

static OUTLINED int64_t abs_sat(int64_t a) { return a == INT64_MIN ? INT64_MAX : a < 0 ? -a : a; }

static uint64_t magnitude(int64_t a) { return a < 0 ? 0u - (uint64_t)a : (uint64_t)a; }

/* Rounds towards minus infinity, which C leaves to the compiler for negative numbers. */
static int64_t shift_right(int64_t a, unsigned bits) { return a < 0 ? ~(~a >> bits) : a >> bits; }

static int64_t shift_left(int64_t a, unsigned bits) { return (int64_t)((uint64_t)a << bits); }

static unsigned leading_zeros(uint64_t a) {
    unsigned count = 0;
    if (a == 0) return 64;
    if (!(a >> 32)) { count += 32; a <<= 32; }
    if (!(a >> 48)) { count += 16; a <<= 16; }
    if (!(a >> 56)) { count += 8; a <<= 8; }
    if (!(a >> 60)) { count += 4; a <<= 4; }
    if (!(a >> 62)) { count += 2; a <<= 2; }
    if (!(a >> 63)) count += 1;
    return count;
}

/* a * b / 2^bits towards zero, saturated; bits <= 63. */
static int64_t mul_shift(int64_t a, int64_t b, unsigned bits) {
    uint64_t x = magnitude(a), y = magnitude(b);
    uint64_t x0 = (uint32_t)x, x1 = x >> 32, y0 = (uint32_t)y, y1 = y >> 32;
    uint64_t low = x0 * y0, cross = x1 * y0 + (low >> 32), other = x0 * y1 + (uint32_t)cross;
    uint64_t high = x1 * y1 + (cross >> 32) + (other >> 32), result;
    low = (other << 32) | (uint32_t)low;
    if (bits != 0) {
        low = (low >> bits) | (high << (64 - bits));
        high >>= bits;
    }
    result = (high != 0 || low > (uint64_t)INT64_MAX) ? (uint64_t)INT64_MAX : low;
    return (a < 0) != (b < 0) ? -(int64_t)result : (int64_t)result;
}

static OUTLINED int64_t mul_sat(int64_t a, int64_t b) { return mul_shift(a, b, 0); }

/* n / d; d is not 0. Bit by bit: a compiler's own division of 64 bits takes 750 bytes where there is no instruction for it,
 * and an exchange divides a few times. */
static OUTLINED uint64_t quotient_of(uint64_t n, uint64_t d) {
    uint64_t quotient = 0, bit = 1;
    while (d < n && !(d >> 63)) {
        d <<= 1;
        bit <<= 1;
    }
    for (; bit != 0; bit >>= 1, d >>= 1) {
        if (n >= d) {
            n -= d;
            quotient |= bit;
        }
    }
    return quotient;
}

/* a / b towards zero; b is above 0. */
static OUTLINED int64_t divided(int64_t a, int64_t b) {
    const uint64_t quotient = quotient_of(magnitude(a), (uint64_t)b);
    return (int64_t)(a < 0 ? 0u - quotient : quotient);
}

/* numerator * 2^bits / denominator towards zero, to 31 significant bits, saturated. */
static int64_t div_shift(int64_t numerator, int64_t denominator, unsigned bits) {
    bool negative = numerator < 0;
    int64_t saturated = negative ? -INT64_MAX : INT64_MAX;
    unsigned up, zeros, down;
    uint64_t quotient;
    int missing;
    if (numerator == 0) return 0;
    if (denominator <= 0) return saturated;
    up = leading_zeros(magnitude(numerator));
    zeros = leading_zeros((uint64_t)denominator);
    down = zeros < 32 ? 32 - zeros : 0;
    quotient = quotient_of(magnitude(numerator) << up, (uint64_t)denominator >> down);
    missing = (int)bits - (int)up - (int)down;
    if (missing <= -64) quotient = 0;
    else if (missing <= 0) quotient >>= -missing;
    else if (missing >= (int)leading_zeros(quotient)) return saturated;
    else quotient <<= missing;
    if (quotient > (uint64_t)INT64_MAX) return saturated;
    return negative ? -(int64_t)quotient : (int64_t)quotient;
}

static int64_t square_shift(int64_t a, unsigned bits) { return mul_shift(a, a, bits); }

static int64_t root(int64_t square) {
    uint64_t rest = square <= 0 ? 0 : (uint64_t)square, result = 0, bit = (uint64_t)1 << 62;
    while (bit > rest) bit >>= 2;
    while (bit != 0) {
        if (rest >= result + bit) {
            rest -= result + bit;
            result = (result >> 1) + bit;
        } else {
            result >>= 1;
        }
        bit >>= 2;
    }
    return (int64_t)result;
}

static void count_one(uint32_t *counter) {
    if (*counter != UINT32_MAX) *counter += 1;
}

static noctule_sync_verdict_t check(const noctule_exchange_t *e) {
    const int64_t stamps[4] = {e->t1_ns, e->t2_ns, e->t3_ns, e->t4_ns};
    int i;
    for (i = 0; i < 4; i++) {
        if (!(-STAMP_LIMIT_NS < stamps[i] && stamps[i] < STAMP_LIMIT_NS)) return NOCTULE_SYNC_OUT_OF_RANGE;
    }
    if (e->t4_ns < e->t1_ns || e->t3_ns < e->t2_ns) return NOCTULE_SYNC_CLOCK_WENT_BACK;
    return NOCTULE_SYNC_USED;
}

/* ---- proven intervals ---- */

static const noctule_interval_t everything = {INT64_MIN, INT64_MAX};

static bool is_empty(noctule_interval_t i) { return i.lo_ns > i.hi_ns; }

static noctule_interval_t intersect(noctule_interval_t a, noctule_interval_t b) {
    noctule_interval_t both;
    both.lo_ns = max64(a.lo_ns, b.lo_ns);
    both.hi_ns = min64(a.hi_ns, b.hi_ns);
    return both;
}

static int64_t moved(int64_t elapsed_ns, int64_t drift) { return add_sat(mul_shift(elapsed_ns, drift, 46), 1); }

static noctule_interval_t widen(noctule_interval_t i, int64_t elapsed_ns, int64_t drift) {
    if (elapsed_ns != 0) {
        int64_t by_ns = moved(abs_sat(elapsed_ns), drift);
        i.lo_ns = sub_sat(i.lo_ns, by_ns);
        i.hi_ns = add_sat(i.hi_ns, by_ns);
    }
    return i;
}

static int64_t nearest(noctule_interval_t i, int64_t ns) { return max64(min64(ns, i.hi_ns), i.lo_ns); }

static noctule_window_t window_new(noctule_interval_t first) {
    noctule_window_t w;
    w.recent = first;
    w.older = everything;
    w.age_ns = 0;
    return w;
}

static void window_advance(noctule_window_t *w, int64_t elapsed_ns, int64_t drift) {
    w->recent = widen(w->recent, elapsed_ns, drift);
    w->older = widen(w->older, elapsed_ns, drift);
    w->age_ns = add_sat(w->age_ns, elapsed_ns);
    if (w->age_ns >= BUCKET_NS) {
        w->older = w->recent;
        w->recent = everything;
        w->age_ns = 0;
    }
}

static noctule_interval_t window_interval(const noctule_window_t *w) { return intersect(w->recent, w->older); }

/* ---- blocks and what they teach about the path ---- */

static int64_t middle_of(int64_t at_least_ns, int64_t at_most_ns) {
    return add_sat(at_least_ns, shift_right(sub_sat(at_most_ns, at_least_ns), 1));
}

static int64_t edges_middle(const noctule_edges_t *e) { return middle_of(e->at_least_ns, e->at_most_ns); }
static int64_t edges_at_most(const noctule_edges_t *e) { return e->at_most_ns; }
static int64_t edges_at_least(const noctule_edges_t *e) { return e->at_least_ns; }
static int64_t edges_mean(const noctule_edges_t *e) { return e->mean_ns; }
static int64_t edges_width(const noctule_edges_t *e) { return max64(sub_sat(e->at_most_ns, e->at_least_ns), 0); }

static void edges_move_anchor(noctule_edges_t *e, int64_t ns) {
    e->at_most_ns = sub_sat(e->at_most_ns, ns);
    e->at_least_ns = sub_sat(e->at_least_ns, ns);
    e->mean_ns = sub_sat(e->mean_ns, ns);
}

static noctule_block_t block_new(int64_t at_ns, int64_t at_least_ns, int64_t at_most_ns, int64_t slope) {
    noctule_block_t b;
    b.first_ns = b.last_ns = at_ns;
    b.slope = slope;
    b.at_most_ns = at_most_ns;
    b.at_least_ns = at_least_ns;
    b.sum_ns = middle_of(at_least_ns, at_most_ns);
    b.count = 1;
    return b;
}

static void block_add(noctule_block_t *b, int64_t at_ns, int64_t at_least_ns, int64_t at_most_ns) {
    int64_t drifted_ns = mul_shift(sub_sat(at_ns, b->first_ns), b->slope, 46);
    b->at_most_ns = min64(b->at_most_ns, sub_sat(at_most_ns, drifted_ns));
    b->at_least_ns = max64(b->at_least_ns, sub_sat(at_least_ns, drifted_ns));
    b->sum_ns = add_sat(b->sum_ns, sub_sat(middle_of(at_least_ns, at_most_ns), drifted_ns));
    b->last_ns = max64(b->last_ns, at_ns);
    b->count += 1;
}

static int64_t block_span(const noctule_block_t *b) { return sub_sat(b->last_ns, b->first_ns); }

static noctule_edges_t block_edges(const noctule_block_t *b) {
    int64_t half_ns = shift_right(block_span(b), 1), drifted_ns = mul_shift(half_ns, b->slope, 46);
    noctule_edges_t e;
    e.at_ns = add_sat(b->first_ns, half_ns);
    e.at_most_ns = add_sat(b->at_most_ns, drifted_ns);
    e.at_least_ns = add_sat(b->at_least_ns, drifted_ns);
    e.mean_ns = add_sat(divided(b->sum_ns, (int64_t)b->count), drifted_ns);
    e.count = b->count;
    return e;
}

static int64_t rougher(uint32_t count) {
    if (count < 1) count = 1;
    if (count > LARGEST_BLOCK) count = LARGEST_BLOCK;
    return max64(root((int64_t)(LARGEST_BLOCK / count)), 1);
}

static void mean_add(noctule_mean_t *m, int64_t value_ns) {
    unsigned shift = m->seen <= 2 ? 1 : m->seen <= 6 ? 2 : 3;
    int64_t limit_ns;
    if (m->seen == 0) {
        m->ns = value_ns;
        m->seen = 1;
        return;
    }
    limit_ns = add_sat(mul_sat(m->ns, 2), 1000);
    m->ns += shift_right(min64(value_ns, limit_ns) - m->ns, shift);
    count_one(&m->seen);
}

static int64_t off_line(const noctule_bounded_t *s, const noctule_edges_t *now, int64_t ratio,
                        int64_t (*series)(const noctule_edges_t *)) {
    int64_t before_ns = series(&s->before), step_ns = sub_sat(before_ns, series(&s->older));
    return abs_sat(sub_sat(series(now), add_sat(before_ns, mul_shift(step_ns, ratio, 16))));
}

static void movement_add(noctule_bounded_t *s, const noctule_edges_t *e) {
    if (s->edges_known == 2) {
        int64_t ratio = div_shift(sub_sat(e->at_ns, s->before.at_ns), sub_sat(s->before.at_ns, s->older.at_ns), 16);
        if (ratio >= LINE_RATIO_MIN && ratio <= LINE_RATIO_MAX) {
            uint32_t count = e->count < s->before.count ? e->count : s->before.count;
            int64_t scale = 4 * rougher(count < s->older.count ? count : s->older.count);
            mean_add(&s->forward, divided(off_line(s, e, ratio, edges_at_most), scale));
            mean_add(&s->back, divided(off_line(s, e, ratio, edges_at_least), scale));
            mean_add(&s->middle, divided(off_line(s, e, ratio, edges_middle), scale));
            mean_add(&s->mean, divided(off_line(s, e, ratio, edges_mean), scale));
        }
    }
    s->older = s->before;
    s->before = *e;
    if (s->edges_known < 2) s->edges_known += 1;
}

static int64_t tilt(const noctule_bounded_t *s) {
    int64_t quiet_ns = min64(s->forward.ns, s->back.ns), loud_ns = max64(s->forward.ns, s->back.ns), quiet, loud, t;
    uint32_t seen = s->forward.seen;
    if (seen < SIDES_SETTLED || loud_ns < mul_sat(quiet_ns, CLEANER + (int64_t)(CLEANER_EARLY / seen))) return 0;
    quiet = square_shift(quiet_ns, 8);
    loud = square_shift(loud_ns, 8);
    t = div_shift(sub_sat(loud, quiet), max64(add_sat(loud, quiet), 1), 16);
    return s->forward.ns < s->back.ns ? t : -t;
}

static bool mean_is_steadier(const noctule_bounded_t *s) {
    return s->mean.seen >= MEAN_SETTLED && mul_sat(s->mean.ns, 3) < mul_sat(s->middle.ns, 2) && tilt(s) == 0;
}

/* ---- the filters ---- */

typedef struct { int64_t at_ns, offset, variance, explained; } measurement_t;

static int64_t ticks(int64_t elapsed_ns) { return shift_right(elapsed_ns, 30 - TICK_BITS); }

static int64_t drift_variance(int64_t deviation) {
    return clamp64(square_shift(deviation, OFFSET_BITS), P11_MIN, P11_MAX);
}

static int64_t offset_after(const noctule_kalman_t *k, int64_t elapsed_ns) {
    return add_sat(k->offset, mul_shift(k->drift, ticks(elapsed_ns), TICK_BITS));
}

static int64_t variance_after(const noctule_kalman_t *k, int64_t elapsed_ns) {
    int64_t t = ticks(elapsed_ns), p11_t = mul_shift(k->p11, t, TICK_BITS);
    int64_t sum = add_sat(k->p00, mul_shift(k->p01, t, TICK_BITS + 3));
    return clamp64(add_sat(sum, mul_shift(p11_t, t, TICK_BITS + 8)), P00_MIN, P00_MAX);
}

static void kalman_predict(noctule_kalman_t *k, int64_t elapsed_ns, int64_t wandering) {
    int64_t t = ticks(elapsed_ns), p11_t = mul_shift(k->p11, t, TICK_BITS);
    k->offset = offset_after(k, elapsed_ns);
    k->p00 = variance_after(k, elapsed_ns);
    k->p01 = clamp64(add_sat(k->p01, shift_right(p11_t, 4)), -P01_MAX, P01_MAX);
    k->p11 = min64(add_sat(k->p11, mul_shift(wandering, t, TICK_BITS)), P11_MAX);
}

static void kalman_update(noctule_kalman_t *k, int64_t innovation, int64_t variance) {
    int64_t total = add_sat(k->p00, variance);
    int64_t k0 = div_shift(k->p00, total, 30), k1 = div_shift(k->p01, total, TICK_BITS - 4);
    k->offset = add_sat(k->offset, mul_shift(k0, innovation, 30));
    k->drift = clamp64(add_sat(k->drift, mul_shift(k1, innovation, TICK_BITS)), -DRIFT_MAX, DRIFT_MAX);
    k->p11 = max64(sub_sat(k->p11, mul_shift(k1, k->p01, TICK_BITS - 4)), P11_MIN);
    k->p01 = sub_sat(k->p01, mul_shift(k0, k->p01, 30));
    k->p00 = max64(mul_shift(k0, variance, 30), P00_MIN);
}

static void bank_init(noctule_bounded_t *s, const measurement_t *first, int64_t drift_deviation) {
    int i;
    for (i = 0; i < 3; i++) {
        s->filters[i].offset = first->offset;
        s->filters[i].drift = 0;
        s->filters[i].p00 = clamp64(first->variance, P00_MIN, P00_MAX);
        s->filters[i].p01 = 0;
        s->filters[i].p11 = drift_variance(drift_deviation);
        s->scores[i] = ONE;
    }
    s->active = 0;
    s->filter_at_ns = first->at_ns;
    s->noise_scale = ONE;
}

static int64_t bank_offset_at(const noctule_bounded_t *s, int64_t at_ns) {
    return offset_after(&s->filters[s->active], sub_sat(at_ns, s->filter_at_ns));
}

static int64_t bank_drift(const noctule_bounded_t *s) { return s->filters[s->active].drift; }

static int64_t bank_drift_deviation(const noctule_bounded_t *s) { return root(s->filters[s->active].p11) << 8; }

static void bank_shift(noctule_bounded_t *s, int64_t offset) {
    int i;
    for (i = 0; i < 3; i++) s->filters[i].offset = add_sat(s->filters[i].offset, offset);
}

static void bank_move_anchor(noctule_bounded_t *s, int64_t ns) {
    int i;
    for (i = 0; i < 3; i++) s->filters[i].offset = sub_sat(s->filters[i].offset, shift_left(ns, OFFSET_BITS));
}

static void bank_open(noctule_bounded_t *s, int64_t jump, int64_t elapsed_ns) {
    int64_t rate = clamp64(div_shift(jump, max64(ticks(elapsed_ns), 1), TICK_BITS), -RATE_MAX, RATE_MAX);
    int64_t squared = square_shift(jump, 2 * OFFSET_BITS - VARIANCE_BITS);
    int i;
    for (i = 0; i < 3; i++) {
        s->filters[i].p00 = min64(add_sat(s->filters[i].p00, squared), P00_MAX);
        s->filters[i].p11 = min64(add_sat(s->filters[i].p11, drift_variance(rate)), P11_MAX);
    }
}

static bool bank_update(noctule_bounded_t *s, const measurement_t *m) {
    const unsigned to_variance = 2 * OFFSET_BITS - VARIANCE_BITS;
    int64_t elapsed_ns = max64(sub_sat(m->at_ns, s->filter_at_ns), 0), variance, innovation, total, beyond;
    const noctule_kalman_t *selected = &s->filters[s->active];
    bool has_moved;
    uint8_t best = 0, i;
    for (i = 0; i < 3; i++) kalman_predict(&s->filters[i], elapsed_ns, wander[i]);
    s->filter_at_ns = m->at_ns;
    variance = clamp64(mul_shift(m->variance, s->noise_scale, 8), P00_MIN, P00_MAX);
    innovation = sub_sat(m->offset, selected->offset);
    total = add_sat(selected->p00, variance);
    beyond = max64(sub_sat(abs_sat(innovation), m->explained), 0);
    has_moved = square_shift(beyond, to_variance) > mul_sat(total, 25);
    if (has_moved) {
        bank_open(s, innovation, elapsed_ns);
    } else {
        int64_t surprise = min64(div_shift(square_shift(innovation, to_variance), total, 8), 8 * ONE);
        s->noise_scale += mul_shift(surprise - ONE, s->noise_scale, 12);
        s->noise_scale = clamp64(s->noise_scale, ONE / 16, ONE * 64);
    }
    for (i = 0; i < 3; i++) {
        int64_t surprise;
        innovation = sub_sat(m->offset, s->filters[i].offset);
        surprise = min64(div_shift(square_shift(innovation, to_variance), variance, 8), 64 * ONE);
        s->scores[i] += shift_right(surprise - s->scores[i], 4);
        kalman_update(&s->filters[i], innovation, variance);
    }
    for (i = 1; i < 3; i++) {
        if (s->scores[i] < s->scores[best] - s->scores[best] / 4) best = i;
    }
    s->active = best;
    return has_moved;
}

static void bank_relock(noctule_bounded_t *s, const measurement_t *m, int64_t drift_deviation) {
    noctule_kalman_t fresh = s->filters[s->active];
    int i;
    fresh.offset = m->offset;
    fresh.p00 = clamp64(m->variance, P00_MIN, P00_MAX);
    fresh.p01 = 0;
    fresh.p11 = min64(add_sat(fresh.p11, drift_variance(drift_deviation)), P11_MAX);
    for (i = 0; i < 3; i++) s->filters[i] = fresh;
    s->filter_at_ns = m->at_ns;
}

/* ---- bounded ---- */

typedef struct {
    int64_t t4_ns, at_ns, at_least_ns, at_most_ns, round_trip_ns;
    noctule_interval_t proven;
} seen_t;

typedef enum { AGREES, DOUBTFUL, CONTRADICTS } standing_t;

static int64_t floor_ns(const noctule_bounded_t *s) { return min64(s->floor_recent_ns, s->floor_older_ns); }

static void lower_floor(noctule_bounded_t *s, int64_t round_trip_ns) {
    int64_t before_ns = floor_ns(s);
    if (round_trip_ns < s->floor_recent_ns) {
        s->second_recent_ns = s->floor_recent_ns;
        s->floor_recent_ns = round_trip_ns;
    } else if (round_trip_ns > s->floor_recent_ns) {
        s->second_recent_ns = min64(s->second_recent_ns, round_trip_ns);
    }
    bank_shift(s, mul_shift(sub_sat(before_ns, floor_ns(s)), tilt(s), 1));
}

static measurement_t measure(noctule_bounded_t *s, const noctule_block_t *block) {
    noctule_edges_t e = block_edges(block);
    int64_t slope_error_ns = mul_shift(block_span(block), bank_drift_deviation(s), 46);
    int64_t excess_ns, rough = rougher(e.count), spread_ns[5] = {0, 0, 0, 0, STAMP_NOISE_NS}, variance = 0;
    measurement_t m;
    int i;
    if (slope_error_ns < SLOPE_ERROR_NS && !s->has_contradiction) lower_floor(s, edges_width(&e));
    excess_ns = max64(sub_sat(edges_width(&e), floor_ns(s)), 0);
    mean_add(&s->usual_excess, divided(excess_ns, rough));
    if (mean_is_steadier(s)) {
        m.offset = shift_left(e.mean_ns, OFFSET_BITS);
        spread_ns[0] = mul_sat(s->mean.ns, rough);
    } else {
        int64_t leaning = tilt(s), unexplained = FULL_TILT - abs_sat(leaning);
        int64_t usual_ns = mul_sat(max64(shift_right(s->usual_excess.ns, 3), s->middle.ns), rough);
        int64_t quiet_ns = mul_sat(min64(s->forward.ns, s->back.ns), rough);
        m.offset = add_sat(shift_left(edges_middle(&e), OFFSET_BITS), mul_shift(excess_ns, leaning, 1));
        spread_ns[0] = mul_shift(shift_right(excess_ns, 2), unexplained, 16);
        spread_ns[1] = mul_shift(usual_ns, unexplained, 16);
        spread_ns[2] = mul_shift(quiet_ns, abs_sat(leaning), 16);
    }
    spread_ns[3] = shift_right(slope_error_ns, 2);
    for (i = 0; i < 5; i++) variance = add_sat(variance, square_shift(spread_ns[i], 0));
    m.at_ns = e.at_ns;
    m.variance = shift_left(min64(variance, INT64_C(1) << 52), VARIANCE_BITS);
    m.explained = shift_left(excess_ns, OFFSET_BITS - 1);
    return m;
}

static noctule_block_t new_block(const noctule_bounded_t *s, const seen_t *seen) {
    return block_new(seen->at_ns, sub_sat(seen->at_least_ns, s->anchor_ns), sub_sat(seen->at_most_ns, s->anchor_ns),
                     bank_drift(s));
}

static void add_to_block(const noctule_bounded_t *s, noctule_block_t *block, const seen_t *seen) {
    block_add(block, seen->at_ns, sub_sat(seen->at_least_ns, s->anchor_ns), sub_sat(seen->at_most_ns, s->anchor_ns));
}

static void start(noctule_bounded_t *s, const seen_t *seen) {
    static const noctule_mean_t no_mean = {0, 0};
    int64_t drift_deviation = (int64_t)s->config.max_drift_ppm * PPM;
    measurement_t first = {0, 0, 0, 0};
    noctule_block_t block;
    s->has_lock = true;
    s->has_relocked = s->withdrawn = s->has_block = s->has_contradiction = false;
    s->anchor_ns = add_sat(seen->at_least_ns, shift_right(seen->round_trip_ns, 1));
    s->last_ns = s->agreed_ns = seen->t4_ns;
    s->window = window_new(seen->proven);
    s->floor_recent_ns = seen->round_trip_ns;
    s->floor_older_ns = s->second_recent_ns = s->second_older_ns = INT64_MAX;
    s->floor_blocks = 0;
    s->edges_known = 0;
    s->forward = s->back = s->middle = s->mean = no_mean;
    s->usual_excess.ns = shift_right(seen->round_trip_ns, 1);
    s->usual_excess.seen = 1;
    s->block_target = 1;
    s->blocks_at_target = 0;
    first.at_ns = seen->at_ns;
    bank_init(s, &first, drift_deviation);
    block = new_block(s, seen);
    first = measure(s, &block);
    bank_init(s, &first, drift_deviation);
}

static int64_t offset_at(const noctule_bounded_t *s, int64_t at_ns) {
    return add_sat(s->anchor_ns, shift_right(bank_offset_at(s, at_ns), OFFSET_BITS));
}

static int64_t sigma_at(const noctule_bounded_t *s, int64_t at_ns) {
    return root(variance_after(&s->filters[s->active], max64(sub_sat(at_ns, s->filter_at_ns), 0))) >>
           (VARIANCE_BITS / 2);
}

static int64_t reported_sigma_at(const noctule_bounded_t *s, int64_t at_ns) {
    int64_t second_ns = min64(max64(s->floor_recent_ns, s->floor_older_ns), min64(s->second_recent_ns, s->second_older_ns));
    int64_t excess_ns = second_ns == INT64_MAX ? 0 : sub_sat(second_ns, floor_ns(s));
    int64_t common_ns = mul_shift(mul_shift(excess_ns, abs_sat(tilt(s)), 17), ROOT_2, 16), filter_ns = sigma_at(s, at_ns);
    if (common_ns == 0) return filter_ns;
    return root(add_sat(square_shift(filter_ns, 0), square_shift(common_ns, 0)));
}

static standing_t standing(noctule_bounded_t *s, const seen_t *seen) {
    int64_t estimate_ns, sigma_ns, slack_ns, outside_ns, midpoint_ns, off_ns, explained_ns;
    bool disjoint;
    lower_floor(s, seen->round_trip_ns);
    estimate_ns = offset_at(s, seen->t4_ns);
    sigma_ns = sigma_at(s, seen->t4_ns);
    slack_ns = add_sat(4 * sigma_ns, STAMP_NOISE_NS);
    outside_ns = abs_sat(sub_sat(nearest(seen->proven, estimate_ns), estimate_ns));
    disjoint = !s->withdrawn && is_empty(intersect(window_interval(&s->window), seen->proven));
    if (disjoint || outside_ns > slack_ns) return CONTRADICTS;
    midpoint_ns = add_sat(seen->at_least_ns, shift_right(seen->round_trip_ns, 1));
    off_ns = abs_sat(sub_sat(midpoint_ns, offset_at(s, seen->at_ns)));
    explained_ns = add_sat(shift_right(sub_sat(seen->round_trip_ns, floor_ns(s)), 1), 6 * sigma_ns);
    explained_ns = add_sat(add_sat(explained_ns, s->usual_excess.ns), STAMP_NOISE_NS);
    return off_ns > explained_ns ? DOUBTFUL : AGREES;
}

static void close_block(noctule_bounded_t *s) {
    noctule_edges_t e = block_edges(&s->block);
    measurement_t m = measure(s, &s->block);
    int64_t moved_ns;
    s->has_block = false;
    if (bank_update(s, &m)) {
        s->block_target = s->block_target / 4 > 1 ? s->block_target / 4 : 1;
        s->blocks_at_target = 0;
    }
    s->floor_blocks += 1;
    if (s->floor_blocks == FLOOR_BLOCKS) {
        s->floor_older_ns = s->floor_recent_ns;
        s->second_older_ns = s->second_recent_ns;
        s->floor_recent_ns = edges_width(&e);
        s->second_recent_ns = INT64_MAX;
        s->floor_blocks = 0;
    }
    movement_add(s, &e);
    s->blocks_at_target += 1;
    if (s->blocks_at_target >= 2 && s->block_target < LARGEST_BLOCK) {
        s->block_target *= 2;
        s->blocks_at_target = 0;
    }
    moved_ns = shift_right(bank_offset_at(s, e.at_ns), OFFSET_BITS);
    s->anchor_ns = add_sat(s->anchor_ns, moved_ns);
    bank_move_anchor(s, moved_ns);
    edges_move_anchor(&s->before, moved_ns);
    if (s->edges_known == 2) edges_move_anchor(&s->older, moved_ns);
}

static void agree(noctule_bounded_t *s, const seen_t *seen) {
    if (s->withdrawn || s->config.distrust_past) {
        s->window = window_new(seen->proven);
        s->withdrawn = false;
    } else {
        s->window.recent = intersect(s->window.recent, seen->proven);
    }
    s->has_contradiction = false;
    s->agreed_ns = seen->t4_ns;
    if (s->has_block && sub_sat(seen->at_ns, s->block.first_ns) > LONGEST_BLOCK_NS) close_block(s);
    if (s->has_block) {
        add_to_block(s, &s->block, seen);
    } else {
        s->block = new_block(s, seen);
        s->has_block = true;
    }
    if (s->block.count >= s->block_target) close_block(s);
}

static void relock(noctule_bounded_t *s, int64_t limit) {
    noctule_block_t *block = &s->contradiction_block;
    noctule_edges_t e = block_edges(block);
    int64_t moved_ns = edges_middle(&e);
    int64_t jump_ns = sub_sat(moved_ns, shift_right(bank_offset_at(s, e.at_ns), OFFSET_BITS));
    int64_t elapsed_ns = max64(sub_sat(s->last_ns, s->agreed_ns), 1);
    int64_t rate = div_shift(abs_sat(jump_ns), elapsed_ns, 46), drift_deviation, slope_error_ns;
    measurement_t m;
    s->anchor_ns = add_sat(s->anchor_ns, moved_ns);
    block->at_most_ns = sub_sat(block->at_most_ns, moved_ns);
    block->at_least_ns = sub_sat(block->at_least_ns, moved_ns);
    block->sum_ns = sub_sat(block->sum_ns, mul_sat(moved_ns, (int64_t)block->count));
    m = measure(s, block);
    if (s->has_relocked && sub_sat(s->last_ns, s->relocked_ns) < RELOCK_AGAIN_NS) drift_deviation = limit;
    else drift_deviation = rate < PLAUSIBLE_RATE ? rate : PPM;
    slope_error_ns = min64(mul_shift(block_span(block), drift_deviation, 46), INT64_C(1) << 26);
    m.variance += shift_left(square_shift(slope_error_ns, 0), VARIANCE_BITS);
    bank_relock(s, &m, drift_deviation);
    if (!s->config.distrust_past) s->window = s->contradiction_window;
    s->withdrawn = s->has_contradiction = s->has_block = false;
    s->block_target = 1;
    s->blocks_at_target = 0;
    s->edges_known = 0;
    s->agreed_ns = s->relocked_ns = s->last_ns;
    s->has_relocked = true;
}

static bool disagree(noctule_bounded_t *s, const seen_t *seen, bool contradicts, int64_t limit) {
    uint32_t count = s->has_contradiction ? s->contradiction_count + 1 : 1;
    s->window = window_new(seen->proven);
    s->withdrawn = s->withdrawn || contradicts;
    if (s->has_contradiction && !is_empty(intersect(window_interval(&s->contradiction_window), seen->proven))) {
        s->contradiction_window.recent = intersect(s->contradiction_window.recent, seen->proven);
        add_to_block(s, &s->contradiction_block, seen);
    } else {
        s->contradiction_window = s->window;
        s->contradiction_block = new_block(s, seen);
    }
    s->has_contradiction = true;
    s->contradiction_count = count;
    if (count < CONTRADICTIONS_TO_RELOCK) return false;
    relock(s, limit);
    return true;
}

static int64_t drift_limit(const noctule_bounded_t *s) {
    int64_t configured = (int64_t)s->config.max_drift_ppm * PPM, drift;
    if (!s->has_lock) return configured;
    drift = abs_sat(bank_drift(s));
    return max64(configured, drift + (drift >> 2) + 3 * bank_drift_deviation(s));
}

static noctule_sync_verdict_t judge(noctule_bounded_t *s, const noctule_exchange_t *e) {
    noctule_sync_verdict_t verdict = check(e);
    int64_t limit = drift_limit(s), elapsed_ns;
    standing_t how;
    seen_t seen;
    if (verdict != NOCTULE_SYNC_USED) return verdict;
    if (e->t4_ns - e->t1_ns > LONGEST_GAP_NS) return NOCTULE_SYNC_TOO_LONG;
    seen.t4_ns = e->t4_ns;
    seen.at_ns = e->t1_ns + ((e->t4_ns - e->t1_ns) >> 1);
    seen.at_least_ns = add_sat(e->t3_ns - e->t4_ns, s->config.wire_back_ns);
    seen.at_most_ns = sub_sat(e->t2_ns - e->t1_ns, s->config.wire_forward_ns);
    seen.round_trip_ns = max64(sub_sat(seen.at_most_ns, seen.at_least_ns), 0);
    seen.proven.lo_ns = sub_sat(seen.at_least_ns, s->config.local_resolution_ns);
    seen.proven.hi_ns = add_sat(add_sat(seen.at_most_ns, s->config.remote_resolution_ns),
                                moved(e->t4_ns - e->t1_ns, limit));
    if (is_empty(seen.proven)) return NOCTULE_SYNC_NEGATIVE_ROUND_TRIP;
    if (!s->has_lock) {
        start(s, &seen);
        return NOCTULE_SYNC_USED;
    }
    elapsed_ns = e->t4_ns - s->last_ns;
    if (elapsed_ns < 0) return NOCTULE_SYNC_OUT_OF_ORDER;
    if (elapsed_ns > LONGEST_GAP_NS) {
        start(s, &seen);
        count_one(&s->relocks);
        return NOCTULE_SYNC_USED;
    }
    window_advance(&s->window, elapsed_ns, limit);
    if (s->has_contradiction) window_advance(&s->contradiction_window, elapsed_ns, limit);
    s->last_ns = add_sat(s->last_ns, elapsed_ns);
    how = standing(s, &seen);
    if (how == AGREES) {
        agree(s, &seen);
        return NOCTULE_SYNC_USED;
    }
    if (!disagree(s, &seen, how == CONTRADICTS, limit)) return NOCTULE_SYNC_CONTRADICTION;
    count_one(&s->relocks);
    return NOCTULE_SYNC_USED;
}

static int64_t or_default(int64_t ns, int64_t fallback) {
    return ns == 0 ? fallback : clamp64(ns, 0, LONGEST_GAP_NS);
}

void noctule_bounded_init(noctule_bounded_t *self, const noctule_bounded_config_t *config) {
    noctule_bounded_config_t *c = &self->config;
    memset(self, 0, sizeof *self);
    if (config != NULL) *c = *config;
    if (c->max_drift_ppm == 0) c->max_drift_ppm = 200;
    if (c->max_drift_ppm > 10000) c->max_drift_ppm = 10000;
    c->wire_forward_ns = or_default(c->wire_forward_ns, 0);
    c->wire_back_ns = or_default(c->wire_back_ns, 0);
    c->local_resolution_ns = or_default(c->local_resolution_ns, 1);
    c->remote_resolution_ns = or_default(c->remote_resolution_ns, 1);
    c->stale_after_ns = or_default(c->stale_after_ns, INT64_C(10000000000));
}

noctule_sync_verdict_t noctule_bounded_handle_exchange(noctule_bounded_t *self, const noctule_exchange_t *exchange) {
    noctule_sync_verdict_t verdict = judge(self, exchange);
    count_one(verdict == NOCTULE_SYNC_USED ? &self->accepted : &self->rejected);
    return verdict;
}

bool noctule_bounded_estimate(const noctule_bounded_t *self, int64_t now_ns, noctule_estimate_t *estimate) {
    int64_t elapsed_ns, likely_ns;
    noctule_interval_t proven;
    bool confined;
    if (!self->has_lock) return false;
    elapsed_ns = sub_sat(now_ns, self->last_ns);
    proven = widen(window_interval(&self->window), elapsed_ns, drift_limit(self));
    confined = !self->withdrawn && !is_empty(proven);
    likely_ns = offset_at(self, now_ns);
    estimate->offset_ns = confined ? nearest(proven, likely_ns) : likely_ns;
    estimate->drift_2_46 = bank_drift(self);
    estimate->bound_ns = -1;
    if (confined) {
        estimate->bound_ns =
            max64(sub_sat(proven.hi_ns, estimate->offset_ns), sub_sat(estimate->offset_ns, proven.lo_ns));
    }
    estimate->sigma_ns = reported_sigma_at(self, now_ns);
    if (elapsed_ns > self->config.stale_after_ns) estimate->state = NOCTULE_SYNC_STALE;
    else if (self->withdrawn) estimate->state = NOCTULE_SYNC_STEPPED;
    else estimate->state = bank_drift_deviation(self) > PPM ? NOCTULE_SYNC_ACQUIRING : NOCTULE_SYNC_LOCKED;
    return true;
}

/* ---- ema ---- */

#define CONVERGENCE_WINDOW 500u
#define GAIN_FIRST 0.05
#define GAIN_FINAL 0.003

static double exp_of_negative(double x) {
    double sum = 1.0, n, r, power;
    int64_t k;
    uint64_t bits;
    if (!(x > -700.0)) return 0.0;
    if (x >= 0.0) return 1.0;
    k = (int64_t)(x * 1.4426950408889634 - 0.5);
    r = (x - (double)k * 6.931471803691238e-1) - (double)k * 1.9082149292705877e-10;
    for (n = 13.0; n >= 1.0; n -= 1.0) sum = 1.0 + sum * r / n;
    bits = (uint64_t)(1023 + k) << 52;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}

static double ema_gain(const noctule_ema_t *s) {
    if (s->sequence >= CONVERGENCE_WINDOW) return GAIN_FINAL;
    if (s->preset == NOCTULE_EMA_PX4) {
        double progress = (double)s->sequence / (double)CONVERGENCE_WINDOW;
        double p = 1.0 - exp_of_negative(0.5 * (1.0 - 1.0 / (1.0 - progress)));
        return p * GAIN_FINAL + (1.0 - p) * GAIN_FIRST;
    } else {
        float progress = (float)s->sequence / (float)CONVERGENCE_WINDOW;
        float exponent = 0.5f * (1.0f - 1.0f / (1.0f - progress));
        float p = 1.0f - (float)exp_of_negative((double)exponent);
        float gain = p * (float)GAIN_FINAL + (1.0f - p) * (float)GAIN_FIRST;
        return (double)gain;
    }
}

static void ema_add_sample(noctule_ema_t *s, double observed) {
    double gain = ema_gain(s), previous = s->offset;
    if (s->sequence == 0) {
        s->offset = observed;
    } else {
        s->offset = gain * observed + (1.0 - gain) * (s->offset + s->skew);
        s->skew = gain * (s->offset - previous) + (1.0 - gain) * s->skew;
    }
    count_one(&s->sequence);
    s->high_deviation_in_a_row = 0;
}

/* Towards zero and saturating, as Rust's conversion is; C leaves the outside undefined. */
static int64_t to_int64(double x) {
    if (x >= 9223372036854775807.0) return INT64_MAX;
    if (x <= -9223372036854775808.0) return INT64_MIN;
    return x == x ? (int64_t)x : 0;
}

static noctule_sync_verdict_t ema_judge(noctule_ema_t *s, const noctule_exchange_t *e) {
    bool px4 = s->preset == NOCTULE_EMA_PX4;
    int64_t unit = px4 ? 1000 : 1, gate = px4 ? 100000 : 10000000, sent, remote, now, observed, deviation;
    noctule_sync_verdict_t verdict = check(e);
    if (verdict != NOCTULE_SYNC_USED) return verdict;
    if (e->t3_ns <= 0) return NOCTULE_SYNC_OUT_OF_RANGE;
    sent = e->t1_ns / unit;
    remote = e->t3_ns / unit;
    now = e->t4_ns / unit;
    observed = add_sat(sent - remote, now - remote) / 2;
    if (now - sent >= 10000000 / unit) return NOCTULE_SYNC_TOO_LONG;
    deviation = abs_sat(sub_sat(to_int64(s->offset), observed));
    if (s->sequence >= CONVERGENCE_WINDOW && deviation > gate) {
        s->high_deviation_in_a_row += 1;
        if (s->high_deviation_in_a_row > (px4 ? 5u : 10u)) {
            s->sequence = s->high_deviation_in_a_row = 0;
            s->offset = s->skew = 0.0;
            count_one(&s->relocks);
        }
        return NOCTULE_SYNC_CONTRADICTION;
    }
    ema_add_sample(s, (double)observed);
    if (s->has_last) s->interval_ns = sub_sat(e->t4_ns, s->last_t4_ns);
    s->has_last = true;
    s->last_t4_ns = e->t4_ns;
    return NOCTULE_SYNC_USED;
}

void noctule_ema_init(noctule_ema_t *self, noctule_ema_preset_t preset) {
    memset(self, 0, sizeof *self);
    self->preset = preset;
}

noctule_sync_verdict_t noctule_ema_handle_exchange(noctule_ema_t *self, const noctule_exchange_t *exchange) {
    noctule_sync_verdict_t verdict = ema_judge(self, exchange);
    count_one(verdict == NOCTULE_SYNC_USED ? &self->accepted : &self->rejected);
    return verdict;
}

bool noctule_ema_estimate(const noctule_ema_t *self, noctule_estimate_t *estimate) {
    double unit = self->preset == NOCTULE_EMA_PX4 ? 1000.0 : 1.0;
    if (self->sequence == 0) return false;
    estimate->offset_ns = to_int64(-self->offset * unit);
    estimate->drift_2_46 =
        to_int64(-self->skew * unit / (double)max64(self->interval_ns, 1) * (double)(INT64_C(1) << 46));
    estimate->bound_ns = estimate->sigma_ns = -1;
    estimate->state = self->sequence >= CONVERGENCE_WINDOW ? NOCTULE_SYNC_LOCKED : NOCTULE_SYNC_ACQUIRING;
    return true;
}
