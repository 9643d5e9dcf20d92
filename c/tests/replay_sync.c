/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Reads rows of t1_ns,t2_ns,t3_ns,t4_ns[,...] from standard input and writes them with what each estimator says, in
 * the format of the files in vectors/time-sync. The Rust test `c_twin` compares the output line by line.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../noctule_sync.h"

static void print_estimate(int verdict, bool known, const noctule_estimate_t *e) {
    if (!known) {
        printf(",%d:-", verdict);
        return;
    }
    printf(",%d:%" PRId64 ":%" PRId64 ":%" PRId64 ":%" PRId64 ":%d", verdict, e->offset_ns, e->drift_2_46, e->bound_ns,
           e->sigma_ns, (int)e->state);
}

static void print_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    printf(":%016" PRIx64, bits);
}

int main(void) {
    noctule_bounded_t bounded;
    noctule_ema_t ema[2];
    noctule_exchange_t x;
    noctule_estimate_t e;
    char line[512];
    int i;
    noctule_bounded_init(&bounded, NULL);
    noctule_ema_init(&ema[0], NOCTULE_EMA_PX4);
    noctule_ema_init(&ema[1], NOCTULE_EMA_MAVROS);
    while (fgets(line, sizeof line, stdin) != NULL) {
        noctule_sync_verdict_t verdict;
        if (sscanf(line, "%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64, &x.t1_ns, &x.t2_ns, &x.t3_ns, &x.t4_ns) != 4) {
            fprintf(stderr, "not a row of four whole numbers: %s", line);
            return 2;
        }
        printf("%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, x.t1_ns, x.t2_ns, x.t3_ns, x.t4_ns);
        verdict = noctule_bounded_handle_exchange(&bounded, &x);
        print_estimate(verdict, noctule_bounded_estimate(&bounded, x.t4_ns, &e), &e);
        for (i = 0; i < 2; i++) {
            verdict = noctule_ema_handle_exchange(&ema[i], &x);
            print_estimate(verdict, noctule_ema_estimate(&ema[i], &e), &e);
            print_bits(ema[i].offset);
            print_bits(ema[i].skew);
        }
        printf("\n");
    }
    return 0;
}
