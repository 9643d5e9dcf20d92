/* Prints the samples of the topic `hello`, and how old each was when it came. */

#include <noctule/noctule.h>
#include <stdio.h>
int main(void) {
    noctule_node_t *node; noctule_subscriber_t *subscriber; noctule_sample_t *sample; noctule_sample_info_t info;
    if (noctule_node_open("listener", NULL, &node) < 0 || noctule_subscriber_open(node, "hello", NULL, &subscriber) < 0)
        return fprintf(stderr, "%s\n", noctule_last_error()), 1;
    while (noctule_receive(subscriber, -1, &sample, &info) == NOCTULE_OK) {
        if (info.age_ns != INT64_MIN)
            printf("%.*s: %lld ns old\n", (int)info.length_bytes, (const char *)info.bytes, (long long)info.age_ns);
        noctule_sample_release(sample);
    }
}
