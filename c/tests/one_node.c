/* A publisher and a subscriber of one node, in shared memory alone: what an emulator of another processor can run, which has not all of
 * Linux's socket options. Takes the domain as its argument. */
#include <noctule/noctule.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 2000
#define SAMPLE_BYTES 1000

static void must(int is_true, const char *what) {
    if (is_true) return;
    fprintf(stderr, "%s: %s\n", what, noctule_last_error());
    exit(1);
}

int main(int count, char **arguments) {
    noctule_node_options_t options = {.domain = count > 1 ? (uint32_t)strtoul(arguments[1], NULL, 10) : 0};
    noctule_node_t *node = NULL;
    noctule_publisher_t *publisher = NULL;
    noctule_subscriber_t *subscriber = NULL;
    must(noctule_node_open("one", &options, &node) == NOCTULE_OK, "the node does not open");
    must(noctule_publisher_open(node, "numbers", NULL, &publisher) == NOCTULE_OK, "the publisher does not open");
    must(noctule_subscriber_open(node, "numbers", NULL, &subscriber) == NOCTULE_OK, "the subscriber does not open");
    while (noctule_publisher_readers(publisher) == 0 || noctule_subscriber_publishers(subscriber) == 0) {
        noctule_sample_t *none = NULL;
        noctule_sample_info_t info;
        must(noctule_receive(subscriber, 5000000, &none, &info) == NOCTULE_NOTHING, "a sample comes before it is sent");
    }
    for (unsigned number = 0; number < SAMPLES; number++) {
        unsigned char sent[SAMPLE_BYTES], got[SAMPLE_BYTES];
        noctule_sample_info_t info;
        memset(sent, (int)(number % 251), sizeof sent);
        must(noctule_publish(publisher, sent, sizeof sent) == NOCTULE_OK, "a sample is not published");
        noctule_sample_t *sample = NULL;
        must(noctule_receive(subscriber, INT64_C(30000000000), &sample, &info) == NOCTULE_OK, "a sample does not come");
        must(info.length_bytes == sizeof sent && memcmp(info.bytes, sent, sizeof sent) == 0, "a sample has other bytes");
        must(info.age_ns >= 0 && info.bound_ns == 0, "a sample has no exact age");
        noctule_sample_release(sample);
        must(noctule_take_into(subscriber, got, sizeof got, &info) == NOCTULE_NOTHING, "there is more than was sent");
    }
    noctule_subscriber_close(subscriber);
    noctule_publisher_close(publisher);
    noctule_node_close(node);
    printf("%d samples of %d bytes\n", SAMPLES, SAMPLE_BYTES);
    return 0;
}
