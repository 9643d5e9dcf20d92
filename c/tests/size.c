/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The smallest program that publishes, subscribes and keeps its clock in step: what it links is what the client costs in
 * flash, the compiler's and the library's functions it needs included. BOUNDED: with the estimator.
 */
#include "../noctule_client.h"

extern const noctule_client_config_t config;
extern volatile int64_t now_ns;
extern uint8_t out[], in[];
extern volatile size_t got;
void sent(int32_t length);

static noctule_client_t client;
#ifdef BOUNDED
static noctule_bounded_t bounded;

void on_exchange(void *context, const noctule_exchange_t *exchange);
void on_exchange(void *context, const noctule_exchange_t *exchange) {
    noctule_estimate_t estimate;
    (void)context;
    noctule_bounded_handle_exchange(&bounded, exchange);
    if (noctule_bounded_estimate(&bounded, now_ns, &estimate)) now_ns = estimate.offset_ns;
}
#endif

int main(void) {
    uint8_t sample[8];
    noctule_cdr_writer_t cdr = noctule_cdr_writer(sample, sizeof sample);
    noctule_cdr_reader_t reader = noctule_cdr_reader(in, 4);
#ifdef BOUNDED
    noctule_bounded_init(&bounded, NULL);
    out[0] = (uint8_t)(uintptr_t)on_exchange;
#endif
    noctule_client_init(&client, &config);
    for (;;) {
        noctule_client_handle_bytes(&client, in, got, now_ns);
        noctule_cdr_put_u32(&cdr, noctule_cdr_take_u32(&reader));
        noctule_client_publish(&client, 0, sample, cdr.length, now_ns);
        sent(noctule_client_poll_transmit(&client, now_ns, out, got));
        now_ns = noctule_client_next_timeout(&client, now_ns);
    }
}
