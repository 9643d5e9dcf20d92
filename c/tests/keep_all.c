/* keep_all DOMAIN write|read: a topic that keeps all, from one host to another over a line that carries less than is published, to a reader that has
 * room for four samples and pauses now and then. The writer gets "would block", and waits for room; the reader gets every sample.
 * two_hosts.sh runs both. */
#define _POSIX_C_SOURCE 199309L

#include <noctule/noctule.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 300, SAMPLE_BYTES = 3000, DEPTH = 16 };
static const int64_t LONG_NS = 60 * INT64_C(1000000000);

static void must(int truth, const char *what) {
    if (truth) return;
    fprintf(stderr, "%s; last error: %s\n", what, noctule_last_error());
    exit(1);
}

static void write_all(noctule_node_t *node) {
    noctule_publisher_t *publisher = NULL;
    noctule_publisher_options_t offered = {
        .qos = {.reliability = NOCTULE_RELIABLE, .keep_last = DEPTH}, .keep_all = true, .linger_ns = LONG_NS};
    must(noctule_publisher_open(node, "rows", &offered, &publisher) == NOCTULE_OK, "it does not open");
    while (noctule_publisher_readers(publisher) == 0) {
        must(noctule_wait_for_room(publisher, 1, 0) == NOCTULE_OK, "there is room without a reader");
    }
    char bytes[SAMPLE_BYTES] = {0};
    int held_up = 0;
    for (uint32_t number = 0; number < SAMPLES; number++) {
        memcpy(bytes, &number, sizeof number);
        for (int status; (status = noctule_publish(publisher, bytes, sizeof bytes)) != NOCTULE_OK;) {
            must(status == NOCTULE_ERROR_WOULD_BLOCK, "it fails in another way");
            held_up++;
            must(noctule_wait_for_room(publisher, sizeof bytes, LONG_NS) == NOCTULE_OK, "there is never room");
        }
    }
    must(noctule_wait_for_acknowledgments(publisher, LONG_NS) == NOCTULE_OK, "not all is acknowledged");
    noctule_publisher_counters_t counters;
    must(noctule_publisher_counters(publisher, &counters) == NOCTULE_OK && counters.given_up == 0, "some were given up");
    must(held_up > 0, "it was never held up");
    printf("C: %d samples, held up %d times\n", SAMPLES, held_up);
    noctule_publisher_close(publisher);
}

static void read_all(noctule_node_t *node) {
    noctule_subscriber_t *subscriber = NULL;
    noctule_subscriber_options_t requested = {.qos = {.reliability = NOCTULE_RELIABLE, .keep_last = 4}, .keep_all = true};
    must(noctule_subscriber_open(node, "rows", &requested, &subscriber) == NOCTULE_OK, "it does not open");
    /* A topic of which only this node publishes, and whose subscriber leaves that out. */
    noctule_publisher_t *own = NULL;
    noctule_subscriber_t *nothing = NULL;
    noctule_subscriber_options_t of_others = {.ignore_local = true};
    must(noctule_publisher_open(node, "nothing", NULL, &own) == NOCTULE_OK, "it does not open");
    must(noctule_subscriber_open(node, "nothing", &of_others, &nothing) == NOCTULE_OK, "it does not open");
    for (uint32_t expected = 0; expected < SAMPLES; expected++) {
        noctule_sample_t *sample = NULL;
        noctule_sample_info_t info;
        if (expected % 50 == 49) {
            must(noctule_publish(own, "own", 3) == NOCTULE_OK, "it is not published");
            must(noctule_receive(nothing, 100000000, &sample, &info) == NOCTULE_NOTHING, "there is something");
        }
        must(noctule_receive(subscriber, LONG_NS, &sample, &info) == NOCTULE_OK, "a sample is missing");
        uint32_t number;
        memcpy(&number, info.bytes, sizeof number);
        must(number == expected && info.missed == 0 && info.length_bytes == SAMPLE_BYTES, "another sample than was due");
        noctule_sample_release(sample);
    }
    noctule_subscriber_close(nothing);
    noctule_publisher_close(own);
    noctule_subscriber_close(subscriber);
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "keep_all DOMAIN write|read\n");
        return 2;
    }
    noctule_node_options_t options = {.domain = (uint32_t)strtoul(arguments[1], NULL, 10)};
    noctule_node_t *node = NULL;
    must(noctule_node_open(arguments[2], &options, &node) == NOCTULE_OK, "no node");
    if (strcmp(arguments[2], "write") == 0) write_all(node); else read_all(node);
    noctule_node_close(node);
    return 0;
}
