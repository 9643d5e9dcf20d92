/* The library's side of the peer: one node, at most one publisher and one subscriber. */
#include "topic.h"

#include <noctule/noctule.h>

static struct {
    noctule_node_t *node;
    noctule_publisher_t *publisher;
    noctule_subscriber_t *subscriber;
} topic;

/* keep_all: a reader that is behind for so long has died. */
static const int64_t ROOM_WITHIN_NS = INT64_C(10000000000);

const char *topic_error(void) { return noctule_last_error(); }

#define TEXT(name) #name
#define TEXT_OF(name) TEXT(name)
const char *topic_version(void) { return TEXT_OF(NOCTULE_VERSION); }

int topic_open(const struct topic_setup *setup) {
    static const int waits[] = {NOCTULE_WAIT_SPIN, NOCTULE_WAIT_BLOCK, NOCTULE_WAIT_HYBRID};
    const noctule_qos_t qos = {
        .reliability = setup->reliable ? NOCTULE_RELIABLE : NOCTULE_BEST_EFFORT, .keep_last = setup->history};
    const noctule_publisher_options_t offered = {
        .qos = qos, .payload_bytes_max = setup->payload_bytes, .keep_all = setup->keep_all};
    noctule_subscriber_options_t requested = {.qos = qos, .wait = waits[setup->wait], .keep_all = setup->keep_all};
    if (noctule_node_open(setup->node_name, NULL, &topic.node) != NOCTULE_OK) return -1;
    if (setup->publish && noctule_publisher_open(topic.node, setup->publish, &offered, &topic.publisher) != NOCTULE_OK)
        return -1;
    if (setup->subscribe &&
        noctule_subscriber_open(topic.node, setup->subscribe, &requested, &topic.subscriber) != NOCTULE_OK)
        return -1;
    return 0;
}

bool topic_is_matched(uint64_t readers) {
    int here = topic.publisher ? noctule_publisher_readers(topic.publisher) : 0;
    return (topic.publisher == NULL || (here >= 0 && (uint64_t)here >= readers)) &&
           (topic.subscriber == NULL || noctule_subscriber_publishers(topic.subscriber) > 0);
}

void *topic_loan(size_t length) {
    void *place = NULL;
    return noctule_loan(topic.publisher, length, &place) == NOCTULE_OK ? place : NULL;
}

int topic_publish_loan(size_t length) {
    for (;;) {
        int status = noctule_publish_loan(topic.publisher, length, INT64_MIN);
        if (status == NOCTULE_OK) return 0;
        if (status != NOCTULE_ERROR_WOULD_BLOCK) return -1;
        if (noctule_wait_for_room(topic.publisher, length, ROOM_WITHIN_NS) != NOCTULE_OK) return -1;
    }
}

int topic_receive(int64_t timeout_ns, struct topic_sample *sample) {
    noctule_sample_t *borrowed = NULL;
    noctule_sample_info_t info;
    int status = timeout_ns == 0 ? noctule_take(topic.subscriber, &borrowed, &info)
                                 : noctule_receive(topic.subscriber, timeout_ns, &borrowed, &info);
    if (status == NOCTULE_NOTHING) return 0;
    if (status != NOCTULE_OK) return -1;
    *sample = (struct topic_sample){info.bytes, info.length_bytes, info.age_ns, borrowed};
    return 1;
}

void topic_release(struct topic_sample *sample) { noctule_sample_release(sample->borrowed); }

void topic_close(void) {
    noctule_subscriber_close(topic.subscriber);
    noctule_publisher_close(topic.publisher);
    noctule_node_close(topic.node);
}
