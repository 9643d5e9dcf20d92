/* The library through its C header, in one process: what works, and that bad calls are refused with a sentence. Takes the
 * domain as its argument, so that tests of one machine do not reach each other. */
#define _POSIX_C_SOURCE 199309L

#include "check.h"

#include <noctule/noctule.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint32_t domain;

static noctule_node_t *open_node(const char *name) {
    noctule_node_options_t options = {.domain = domain};
    noctule_node_t *node = NULL;
    if (noctule_node_open(name, &options, &node) != NOCTULE_OK) {
        fprintf(stderr, "%s\n", noctule_last_error());
        exit(1);
    }
    return node;
}

/* Publishes until the subscriber has something: no fixed times. */
static noctule_sample_t *until_received(noctule_publisher_t *publisher, noctule_subscriber_t *subscriber,
                                        const char *text, noctule_sample_info_t *info) {
    for (int i = 0; i < 1000; i++) {
        noctule_sample_t *sample = NULL;
        CHECK(noctule_publish(publisher, text, strlen(text)) == NOCTULE_OK);
        int status = noctule_receive(subscriber, 20 * 1000 * 1000, &sample, info);
        if (status == NOCTULE_OK) return sample;
        CHECK(status == NOCTULE_NOTHING && sample == NULL);
        if (status < 0) break;
    }
    fprintf(stderr, "nothing was received\n");
    exit(1);
}

static void drain(noctule_subscriber_t *subscriber) {
    char buffer[64];
    noctule_sample_info_t info;
    while (noctule_take_into(subscriber, buffer, sizeof buffer, &info) == NOCTULE_OK) {}
}

static void a_sample_is_borrowed_and_knows_its_age(void) {
    noctule_node_t *a = open_node("a"), *b = open_node("b");
    noctule_publisher_t *publisher = NULL;
    noctule_subscriber_t *subscriber = NULL;
    noctule_sample_info_t info;
    CHECK(noctule_publisher_open(a, "imu", NULL, &publisher) == NOCTULE_OK);
    CHECK(noctule_subscriber_open(b, "imu", NULL, &subscriber) == NOCTULE_OK);
    noctule_sample_t *sample = until_received(publisher, subscriber, "sample", &info);
    CHECK(info.length_bytes == 6 && memcmp(info.bytes, "sample", 6) == 0);
    CHECK((uintptr_t)info.bytes % 8 == 0);
    CHECK(info.age_ns >= 0 && info.age_ns == info.receive_time_ns - info.source_time_ns);
    CHECK(info.receive_time_ns <= noctule_now_ns(b));
    CHECK(info.bound_ns == 0 && info.sigma_ns == 0 && info.endpoint > 0);
    CHECK(noctule_publisher_readers(publisher) == 1 && noctule_subscriber_publishers(subscriber) == 1);

    /* One may be borrowed; the next is there, but not for us. */
    noctule_sample_t *second = NULL;
    noctule_sample_info_t untouched = info;
    CHECK(noctule_publish(publisher, "second", 6) == NOCTULE_OK);
    CHECK_FAILS(noctule_take(subscriber, &second, &untouched), NOCTULE_ERROR_BORROWED, "borrow");
    CHECK(second == NULL && memcmp(&untouched, &info, sizeof info) == 0);
    noctule_sample_release(sample);
    CHECK(noctule_take(subscriber, &second, &info) == NOCTULE_OK);
    noctule_sample_release(second);

    /* A sample outlives every other handle. */
    sample = until_received(publisher, subscriber, "last", &info);
    noctule_node_close(a);
    noctule_node_close(b);
    noctule_publisher_close(publisher);
    noctule_subscriber_close(subscriber);
    CHECK(memcmp(info.bytes, "last", 4) == 0);
    noctule_sample_release(sample);
}

static void a_copy_needs_a_buffer_that_is_long_enough(void) {
    noctule_node_t *node = open_node("copy");
    noctule_publisher_t *publisher = NULL;
    noctule_subscriber_t *subscriber = NULL;
    noctule_sample_info_t info;
    char buffer[8];
    CHECK(noctule_publisher_open(node, "copy", NULL, &publisher) == NOCTULE_OK);
    CHECK(noctule_subscriber_open(node, "copy", NULL, &subscriber) == NOCTULE_OK);
    noctule_sample_release(until_received(publisher, subscriber, "first", &info));
    drain(subscriber);
    CHECK(noctule_take_into(subscriber, buffer, sizeof buffer, &info) == NOCTULE_NOTHING);
    CHECK(noctule_publish_at(publisher, "12345678", 8, noctule_now_ns(node) - 1000000) == NOCTULE_OK);
    CHECK_FAILS(noctule_take_into(subscriber, buffer, 7, &info), NOCTULE_ERROR_BUFFER, "8 bytes");
    CHECK(noctule_take_into(subscriber, buffer, 8, &info) == NOCTULE_OK);
    CHECK(info.bytes == buffer && memcmp(buffer, "12345678", 8) == 0 && info.age_ns >= 1000000);
    CHECK(noctule_publish(publisher, NULL, 0) == NOCTULE_OK);
    CHECK(noctule_take_into(subscriber, NULL, 0, &info) == NOCTULE_OK && info.length_bytes == 0);
    noctule_subscriber_close(subscriber);
    noctule_publisher_close(publisher);
    noctule_node_close(node);
}

static void what_was_overwritten_is_counted_and_history_is_kept(void) {
    noctule_node_t *node = open_node("history");
    noctule_publisher_t *publisher = NULL;
    noctule_subscriber_t *subscriber = NULL;
    noctule_publisher_options_t offered = {.qos = {.keep_last = 3, .transient_local = true,
                                                   .reliability = NOCTULE_RELIABLE, .deadline_ns = 1000000000},
                                           .payload_bytes_max = 1, .borrows = 1, .type_name = "byte", .type_hash = 7};
    noctule_subscriber_options_t requested = {.qos = {.transient_local = true, .reliability = NOCTULE_RELIABLE,
                                                      .deadline_ns = 2000000000},
                                              .wait = NOCTULE_WAIT_HYBRID, .borrows = 1,
                                              .type_name = "byte", .type_hash = 7};
    CHECK(noctule_publisher_open(node, "map", &offered, &publisher) == NOCTULE_OK);
    for (unsigned char number = 0; number < 10; number++) CHECK(noctule_publish(publisher, &number, 1) == NOCTULE_OK);
    CHECK(noctule_subscriber_open(node, "map", &requested, &subscriber) == NOCTULE_OK);
    int last = -1;
    while (last < 9) {
        noctule_sample_t *sample = NULL;
        noctule_sample_info_t info;
        CHECK(noctule_receive(subscriber, INT64_C(20000000000), &sample, &info) == NOCTULE_OK);
        if (sample == NULL) break;
        int number = *(const unsigned char *)info.bytes;
        CHECK(number > last && info.sequence == (uint64_t)number + 1);
        last = number;
        noctule_sample_release(sample);
    }
    CHECK_FAILS(noctule_publish(publisher, "12", 2), NOCTULE_ERROR_TOO_LONG, "payload_bytes_max");

    /* Nothing older than its lifespan is taken. */
    noctule_subscriber_t *brief = NULL;
    requested.qos.lifespan_ns = 1;
    noctule_subscriber_close(subscriber);
    CHECK(noctule_subscriber_open(node, "map", &requested, &brief) == NOCTULE_OK);
    while (noctule_subscriber_publishers(brief) == 0) {
        noctule_sample_t *none = NULL;
        noctule_sample_info_t info;
        CHECK(noctule_receive(brief, 1000000, &none, &info) == NOCTULE_NOTHING);
    }
    noctule_sample_info_t info;
    char buffer[1];
    CHECK(noctule_take_into(brief, buffer, 1, &info) == NOCTULE_NOTHING);
    noctule_subscriber_close(brief);
    noctule_publisher_close(publisher);
    noctule_node_close(node);
}

static void the_latest_sample_is_taken_and_a_reader_that_is_behind_holds_up_its_publisher(void) {
    noctule_node_t *node = open_node("room");
    noctule_publisher_t *publisher = NULL;
    noctule_subscriber_t *subscriber = NULL, *last = NULL;
    noctule_publisher_options_t offered = {.qos = {.reliability = NOCTULE_RELIABLE, .keep_last = 4}, .keep_all = true};
    noctule_subscriber_options_t requested = {.qos = {.reliability = NOCTULE_RELIABLE}};
    noctule_subscriber_options_t of_last = {.qos = {.reliability = NOCTULE_RELIABLE, .keep_last = 2}};
    CHECK(noctule_publisher_open(node, "room", &offered, &publisher) == NOCTULE_OK);
    CHECK(noctule_subscriber_open(node, "room", &requested, &subscriber) == NOCTULE_OK);
    CHECK(noctule_subscriber_open(node, "room", &of_last, &last) == NOCTULE_OK);
    noctule_sample_t *sample = NULL;
    noctule_sample_info_t info;
    while (noctule_publisher_readers(publisher) < 2 || noctule_subscriber_publishers(subscriber) == 0 ||
           noctule_subscriber_publishers(last) == 0) {
        CHECK(noctule_receive(subscriber, 1000000, &sample, &info) == NOCTULE_NOTHING);
    }
    for (int number = 1; number <= 4; number++) CHECK(noctule_publish(publisher, &number, sizeof number) == NOCTULE_OK);
    CHECK_FAILS(noctule_publish(publisher, "5", 1), NOCTULE_ERROR_WOULD_BLOCK, "publish again later");
    CHECK(noctule_wait_for_room(publisher, 1, 1000000) == NOCTULE_NOTHING);
    noctule_publisher_counters_t counters;
    CHECK(noctule_publisher_counters(publisher, &counters) == NOCTULE_OK && counters.published == 4 && counters.would_block == 1);
    CHECK(noctule_take(last, &sample, &info) == NOCTULE_OK && *(const int *)info.bytes == 3 && info.missed == 2);
    noctule_sample_release(sample);
    for (int number = 1; number <= 3; number++) {
        CHECK(noctule_take(subscriber, &sample, &info) == NOCTULE_OK && *(const int *)info.bytes == number && info.missed == 0);
        noctule_sample_release(sample);
    }
    CHECK(noctule_wait_for_room(publisher, 1, -1) == NOCTULE_OK);
    /* It is not waited for though it has read nothing since. */
    for (int number = 5; number <= 7; number++) CHECK(noctule_publish(publisher, &number, sizeof number) == NOCTULE_OK);
    CHECK(noctule_take_latest(subscriber, &sample, &info) == NOCTULE_OK && *(const int *)info.bytes == 7);
    noctule_sample_release(sample);
    CHECK(noctule_take_latest(subscriber, &sample, &info) == NOCTULE_NOTHING);
    CHECK(noctule_wait_for_acknowledgments(publisher, 0) == NOCTULE_OK);
    noctule_subscriber_close(last);
    noctule_subscriber_close(subscriber);
    noctule_publisher_close(publisher);
    noctule_node_close(node);
}

static void bad_calls_are_refused_with_a_sentence(void) {
    noctule_node_t *node = open_node("n"), *none = node;
    const char *peers[] = {"nowhere"};
    noctule_node_options_t options = {.domain = 9999};
    CHECK_FAILS(noctule_node_open("n", &options, &none), NOCTULE_ERROR_ARGUMENT, "domain 9999");
    CHECK(none == NULL);
    options = (noctule_node_options_t){.static_peers = peers, .static_peers_count = 1};
    CHECK_FAILS(noctule_node_open("n", &options, &none), NOCTULE_ERROR_ARGUMENT, "nowhere");
    options.static_peers = NULL;
    CHECK_FAILS(noctule_node_open("n", &options, &none), NOCTULE_ERROR_ARGUMENT, "static_peers is NULL");
    options = (noctule_node_options_t){.swarm_key = "/no/such/key"};
    CHECK_FAILS(noctule_node_open("n", &options, &none), NOCTULE_ERROR_ARGUMENT, "/no/such/key");
    CHECK_FAILS(noctule_node_open(NULL, NULL, &none), NOCTULE_ERROR_ARGUMENT, "name is NULL");
    CHECK_FAILS(noctule_node_open("\xff", NULL, &none), NOCTULE_ERROR_ARGUMENT, "UTF-8");
    CHECK_FAILS(noctule_node_open("n", NULL, NULL), NOCTULE_ERROR_ARGUMENT, "node is NULL");
    CHECK(noctule_now_ns(NULL) == INT64_MIN);

    noctule_publisher_t *publisher = NULL;
    noctule_publisher_options_t offered = {.qos = {.keep_last = 70000}};
    CHECK_FAILS(noctule_publisher_open(node, "t", &offered, &publisher), NOCTULE_ERROR_ARGUMENT, "70000");
    offered = (noctule_publisher_options_t){.qos = {.reliability = 3}};
    CHECK_FAILS(noctule_publisher_open(node, "t", &offered, &publisher), NOCTULE_ERROR_ARGUMENT, "reliability");
    offered = (noctule_publisher_options_t){.qos = {.reliability = NOCTULE_RELIABLE}, .multicast = true};
    CHECK_FAILS(noctule_publisher_open(node, "t", &offered, &publisher), NOCTULE_ERROR_ARGUMENT, "multicast");
    offered = (noctule_publisher_options_t){.qos = {.deadline_ns = -1}};
    CHECK_FAILS(noctule_publisher_open(node, "t", &offered, &publisher), NOCTULE_ERROR_ARGUMENT, "deadline_ns");
    offered = (noctule_publisher_options_t){.qos = {.lifespan_ns = -1}};
    CHECK_FAILS(noctule_publisher_open(node, "t", &offered, &publisher), NOCTULE_ERROR_ARGUMENT, "lifespan_ns");
    offered = (noctule_publisher_options_t){.format = "jason"};
    CHECK_FAILS(noctule_publisher_open(node, "t", &offered, &publisher), NOCTULE_ERROR_ARGUMENT, "json, yaml");
    CHECK_FAILS(noctule_publisher_open(node, "", NULL, &publisher), NOCTULE_ERROR_ARGUMENT, "no name");
    CHECK_FAILS(noctule_publisher_open(NULL, "t", NULL, &publisher), NOCTULE_ERROR_ARGUMENT, "node is NULL");
    CHECK_FAILS(noctule_publisher_open(node, "t", NULL, NULL), NOCTULE_ERROR_ARGUMENT, "publisher is NULL");
    CHECK_FAILS(noctule_publish(NULL, "x", 1), NOCTULE_ERROR_ARGUMENT, "publisher is NULL");
    CHECK_FAILS(noctule_publisher_readers(NULL), NOCTULE_ERROR_ARGUMENT, "publisher is NULL");
    CHECK(noctule_publisher_open(node, "t", NULL, &publisher) == NOCTULE_OK);
    CHECK_FAILS(noctule_publish(publisher, NULL, 1), NOCTULE_ERROR_ARGUMENT, "bytes is NULL");
    CHECK_FAILS(noctule_publish(publisher, "x", SIZE_MAX), NOCTULE_ERROR_ARGUMENT, "are the most");
    CHECK_FAILS(noctule_publish(publisher, "x", 70000), NOCTULE_ERROR_TOO_LONG, "70000 bytes");

    noctule_subscriber_t *subscriber = NULL;
    noctule_sample_t *sample = NULL;
    noctule_sample_info_t info;
    noctule_subscriber_options_t requested = {.wait = 3};
    CHECK_FAILS(noctule_subscriber_open(node, "t", &requested, &subscriber), NOCTULE_ERROR_ARGUMENT, "wait");
    requested = (noctule_subscriber_options_t){.borrows = 8};
    CHECK_FAILS(noctule_subscriber_open(node, "t", &requested, &subscriber), NOCTULE_ERROR_ARGUMENT, "borrows");
    requested = (noctule_subscriber_options_t){.type_name = "\xff"};
    CHECK_FAILS(noctule_subscriber_open(node, "t", &requested, &subscriber), NOCTULE_ERROR_ARGUMENT, "type_name");
    CHECK_FAILS(noctule_subscriber_open(node, NULL, NULL, &subscriber), NOCTULE_ERROR_ARGUMENT, "topic is NULL");
    CHECK(noctule_subscriber_open(node, "t", NULL, &subscriber) == NOCTULE_OK);
    CHECK_FAILS(noctule_take(NULL, &sample, &info), NOCTULE_ERROR_ARGUMENT, "subscriber is NULL");
    CHECK_FAILS(noctule_take(subscriber, NULL, &info), NOCTULE_ERROR_ARGUMENT, "sample is NULL");
    CHECK_FAILS(noctule_take(subscriber, &sample, NULL), NOCTULE_ERROR_ARGUMENT, "info is NULL");
    CHECK_FAILS(noctule_take_into(subscriber, NULL, 1, &info), NOCTULE_ERROR_ARGUMENT, "buffer is NULL");
    CHECK_FAILS(noctule_subscriber_publishers(NULL), NOCTULE_ERROR_ARGUMENT, "subscriber is NULL");
    noctule_sample_release(NULL);
    noctule_subscriber_close(NULL);
    noctule_publisher_close(NULL);
    noctule_node_close(NULL);
    noctule_subscriber_close(subscriber);
    noctule_publisher_close(publisher);
    noctule_node_close(node);
}

static void a_wait_set_finds_the_topic_that_has_a_sample(void) {
    noctule_node_t *node = open_node("waiting");
    noctule_publisher_t *publishers[2] = {NULL, NULL};
    noctule_subscriber_t *subscribers[2] = {NULL, NULL};
    const char *topics[2] = {"one", "two"};
    noctule_publisher_options_t offered = {.format = "json"};
    noctule_sample_info_t info;
    noctule_wait_set_t *set = NULL;
    size_t ready = 9;
    CHECK(noctule_wait_set_open(NOCTULE_WAIT_BLOCK, &set) == NOCTULE_OK);
    CHECK(noctule_wait(set, NULL, 0, 0, &ready) == NOCTULE_NOTHING);
    for (int i = 0; i < 2; i++) {
        CHECK(noctule_publisher_open(node, topics[i], &offered, &publishers[i]) == NOCTULE_OK);
        CHECK(noctule_subscriber_open(node, topics[i], NULL, &subscribers[i]) == NOCTULE_OK);
        noctule_sample_release(until_received(publishers[i], subscribers[i], "{}", &info));
        CHECK(info.format != NULL && strcmp(info.format, "json") == 0);
        drain(subscribers[i]);
    }
    CHECK(noctule_wait(set, subscribers, 2, 1000, &ready) == NOCTULE_NOTHING && ready == 9);
    for (size_t i = 0; i < 10; i++) {
        char buffer[8];
        CHECK(noctule_publish(publishers[i % 2], "[1]", 3) == NOCTULE_OK);
        CHECK(noctule_wait(set, subscribers, 2, -1, &ready) == NOCTULE_OK && ready == i % 2);
        CHECK(noctule_take_into(subscribers[ready], buffer, sizeof buffer, &info) == NOCTULE_OK);
    }
    noctule_wake(set);
    CHECK(noctule_wait(set, subscribers, 2, -1, &ready) == NOCTULE_WOKEN);
    noctule_wake(NULL);

    noctule_statistics_t statistics;
    CHECK(noctule_subscriber_statistics(subscribers[0], &statistics) == NOCTULE_OK);
    CHECK(statistics.taken >= 6 && statistics.aged == statistics.taken && statistics.bound_ns == 0);
    CHECK(statistics.age_max_ns >= 0 && statistics.late == 0 && statistics.deadline_missed == 0 && statistics.bytes >= 17);
    CHECK(statistics.age_p99_9_ns == INT64_MIN);
    CHECK_FAILS(noctule_subscriber_statistics(NULL, &statistics), NOCTULE_ERROR_ARGUMENT, "subscriber is NULL");

    noctule_subscriber_t *twice[2] = {subscribers[0], subscribers[0]};
    CHECK_FAILS(noctule_wait(set, twice, 2, 0, &ready), NOCTULE_ERROR_ARGUMENT, "subscribers[1] is there twice");
    noctule_subscriber_t *none = NULL;
    CHECK_FAILS(noctule_wait(set, &none, 1, 0, &ready), NOCTULE_ERROR_ARGUMENT, "subscribers[0] is NULL");
    CHECK_FAILS(noctule_wait(NULL, subscribers, 1, 0, &ready), NOCTULE_ERROR_ARGUMENT, "set is NULL");
    noctule_wait_set_close(set);
    CHECK_FAILS(noctule_wait_set_open(7, &set), NOCTULE_ERROR_ARGUMENT, "number 7");
    CHECK(set == NULL);
    noctule_wait_set_close(NULL);
    for (int i = 0; i < 2; i++) {
        noctule_subscriber_close(subscribers[i]);
        noctule_publisher_close(publishers[i]);
    }
    noctule_node_close(node);
}

/* Context of the callbacks. */
struct heard {
    noctule_dispatcher_t *dispatcher;
    int samples, errors;
    uint64_t last;
};

static void count_sample(void *context, const noctule_sample_info_t *info) {
    struct heard *heard = context;
    CHECK(info->length_bytes == 8 && info->age_ns >= 0);
    memcpy(&heard->last, info->bytes, 8);
    heard->samples++;
    CHECK_FAILS(noctule_spin_once(heard->dispatcher, 0), NOCTULE_ERROR_ARGUMENT, "before it spins");
    if (heard->last == 5) noctule_stop(heard->dispatcher);
}

static void count_error(void *context, const char *sentence) {
    ((struct heard *)context)->errors += sentence[0] != 0;
}

static void a_dispatcher_calls_until_it_is_stopped(void) {
    noctule_node_t *node = open_node("dispatching");
    noctule_publisher_t *publisher = NULL;
    noctule_subscriber_t *subscriber = NULL;
    noctule_sample_info_t info;
    struct heard heard = {NULL, 0, 0, 0};
    CHECK(noctule_dispatcher_open(NOCTULE_WAIT_BLOCK, &heard.dispatcher) == NOCTULE_OK);
    CHECK(noctule_spin(heard.dispatcher) == NOCTULE_OK);
    CHECK(noctule_publisher_open(node, "number", NULL, &publisher) == NOCTULE_OK);
    CHECK(noctule_subscriber_open(node, "number", NULL, &subscriber) == NOCTULE_OK);
    noctule_sample_release(until_received(publisher, subscriber, "8 bytes!", &info));
    drain(subscriber);
    CHECK_FAILS(noctule_on_sample(heard.dispatcher, subscriber, NULL, NULL), NOCTULE_ERROR_ARGUMENT, "callback is NULL");
    CHECK_FAILS(noctule_on_sample(heard.dispatcher, NULL, count_sample, NULL), NOCTULE_ERROR_ARGUMENT, "subscriber is NULL");
    CHECK(noctule_on_error(heard.dispatcher, count_error, &heard) == NOCTULE_OK);
    CHECK(noctule_on_sample(heard.dispatcher, subscriber, count_sample, &heard) == NOCTULE_OK);
    CHECK(noctule_spin_once(heard.dispatcher, 1000) == NOCTULE_NOTHING);
    for (uint64_t number = 1; number <= 6; number++) CHECK(noctule_publish(publisher, &number, 8) == NOCTULE_OK);
    CHECK(noctule_spin(heard.dispatcher) == NOCTULE_OK);
    CHECK(heard.samples == 5 && heard.last == 5 && heard.errors == 0);
    CHECK(noctule_spin_once(heard.dispatcher, -1) == NOCTULE_WOKEN);
    /* The subscriber goes with the dispatcher, also after its node. */
    noctule_node_close(node);
    noctule_dispatcher_close(heard.dispatcher);
    noctule_dispatcher_close(NULL);
    noctule_stop(NULL);
    /* The node's thread reports it to the publisher, which keeps that thread. */
    noctule_wait_set_t *pause = NULL;
    size_t none = 0;
    CHECK(noctule_wait_set_open(NOCTULE_WAIT_BLOCK, &pause) == NOCTULE_OK);
    for (int i = 0; i < 20000 && noctule_publisher_readers(publisher) != 0; i++) noctule_wait(pause, NULL, 0, 1000000, &none);
    CHECK(noctule_publisher_readers(publisher) == 0);
    noctule_wait_set_close(pause);
    noctule_publisher_close(publisher);
}

struct seen {
    int notices, nodes, endpoints, done;
    noctule_node_id_t looked_for;
};

static void see_notice(void *context, const char *kind, const char *sentence) {
    struct seen *seen = context;
    if (strcmp(kind, "mismatch") == 0 && strstr(sentence, "topic other") != NULL) __atomic_add_fetch(&seen->notices, 1, __ATOMIC_SEQ_CST);
}

static void see_done(void *context) { ((struct seen *)context)->done++; }

static void see_node(void *context, const noctule_known_node_t *node) {
    struct seen *seen = context;
    bool is_meant = memcmp(&node->id, &seen->looked_for, sizeof node->id) == 0;
    seen->nodes += is_meant && node->same_host && strcmp(node->name, "there") == 0 && strchr(node->address, ':') != NULL;
}

static void see_endpoint(void *context, const noctule_known_endpoint_t *endpoint) {
    struct seen *seen = context;
    seen->endpoints += endpoint->is_publisher && strcmp(endpoint->topic, "lent") == 0 && endpoint->payload_bytes_max == 4096;
}

static void a_descriptor_is_readable_when_a_sample_has_come_and_a_sample_is_lent(void) {
    struct seen seen = {0};
    noctule_node_options_t options = {.domain = domain, .on_notice = see_notice, .on_notice_context = &seen,
                                      .on_notice_done = see_done};
    noctule_node_t *here = NULL, *there = open_node("there");
    CHECK(noctule_node_open("here", &options, &here) == NOCTULE_OK);
    CHECK(noctule_node_id(there, &seen.looked_for) == NOCTULE_OK);
    noctule_publisher_options_t offered = {.payload_bytes_max = 4096};
    noctule_publisher_options_t other = {.type_name = "one"};
    noctule_subscriber_options_t wanted = {.type_name = "another"};
    noctule_publisher_t *publisher = NULL, *mismatched = NULL;
    noctule_subscriber_t *subscriber = NULL, *unserved = NULL;
    noctule_sample_info_t info;
    noctule_sample_t *sample = NULL;
    void *place = NULL;
    CHECK(noctule_publisher_open(there, "lent", &offered, &publisher) == NOCTULE_OK);
    CHECK(noctule_publisher_open(there, "other", &other, &mismatched) == NOCTULE_OK);
    CHECK(noctule_subscriber_open(here, "lent", NULL, &subscriber) == NOCTULE_OK);
    CHECK(noctule_subscriber_open(here, "other", &wanted, &unserved) == NOCTULE_OK);
    noctule_sample_release(until_received(publisher, subscriber, "first", &info));
    CHECK(memcmp(&info.publisher, &seen.looked_for, sizeof info.publisher) == 0 && info.route == NOCTULE_ROUTE_SHARED_MEMORY);
    drain(subscriber);

    /* Readable after a sample, not after the last was taken. */
    struct pollfd polled = {.fd = noctule_subscriber_descriptor(subscriber), .events = POLLIN};
    CHECK(polled.fd >= 0 && noctule_subscriber_descriptor(subscriber) == polled.fd);
    drain(subscriber);
    CHECK(poll(&polled, 1, 0) == 0);
    for (int round = 0; round < 100; round++) {
        /* A short sample lies elsewhere in its slot than what was lent. */
        const size_t length = round % 3 == 0 ? 1 + (size_t)round % 40 : 3000;
        CHECK(noctule_loan(publisher, 4000, &place) == NOCTULE_OK && (uintptr_t)place % 64 == 0);
        memset(place, round, 4000);
        CHECK(noctule_publish_loan(publisher, length, round % 2 ? INT64_MIN : noctule_now_ns(there)) == NOCTULE_OK);
        CHECK(poll(&polled, 1, 20000) == 1 && polled.revents == POLLIN);
        CHECK(noctule_take(subscriber, &sample, &info) == NOCTULE_OK && info.length_bytes == length);
        CHECK(((const uint8_t *)info.bytes)[0] == round && ((const uint8_t *)info.bytes)[length - 1] == round);
        noctule_sample_release(sample);
        CHECK(noctule_take(subscriber, &sample, &info) == NOCTULE_NOTHING);
        CHECK(poll(&polled, 1, 0) == 0);
    }
    CHECK_FAILS(noctule_publish_loan(publisher, 1, INT64_MIN), NOCTULE_ERROR_ARGUMENT, "0 are lent");
    CHECK(noctule_loan(publisher, 10, &place) == NOCTULE_OK && noctule_drop_loan(publisher) == NOCTULE_OK);
    CHECK_FAILS(noctule_publish_loan(publisher, 1, INT64_MIN), NOCTULE_ERROR_ARGUMENT, "0 are lent");
    CHECK_FAILS(noctule_loan(publisher, 5000, &place), NOCTULE_ERROR_TOO_LONG, "payload_bytes_max");
    CHECK(place == NULL);

    /* Which nodes are there, and what was counted. */
    CHECK(noctule_nodes(here, see_node, &seen) >= 1 && seen.nodes == 1);
    CHECK(noctule_endpoints(here, see_endpoint, &seen) >= 2 && seen.endpoints == 1);
    CHECK_FAILS(noctule_nodes(here, NULL, NULL), NOCTULE_ERROR_ARGUMENT, "callback is NULL");
    noctule_node_counters_t counters = {0};
    noctule_publisher_counters_t published = {0};
    CHECK(noctule_node_counters(here, &counters) == NOCTULE_OK && counters.malformed == 0 && counters.unacknowledged_bytes == 0);
    CHECK(noctule_publisher_counters(publisher, &published) == NOCTULE_OK && published.published >= 101 && published.given_up == 0);
    for (int i = 0; i < 2000 && __atomic_load_n(&seen.notices, __ATOMIC_SEQ_CST) == 0; i++) poll(&polled, 1, 10);
    CHECK(seen.notices == 1);
    noctule_subscriber_close(unserved);
    noctule_subscriber_close(subscriber);
    noctule_publisher_close(mismatched);
    noctule_publisher_close(publisher);
    noctule_node_close(there);
    CHECK(seen.done == 0);
    noctule_node_close(here);
    CHECK(seen.done == 1);
}

static void stamps_of_other_clocks_become_source_times(void) {
    noctule_node_t *node = open_node("stamps");
    noctule_source_time_t time = {0};
    struct timespec stamp;
    int clocks[2][2] = {{CLOCK_MONOTONIC, NOCTULE_CLOCK_MONOTONIC}, {CLOCK_REALTIME, NOCTULE_CLOCK_REALTIME}};
    for (int i = 0; i < 2; i++) {
        int64_t before = noctule_now_ns(node);
        clock_gettime(clocks[i][0], &stamp);
        int64_t after = noctule_now_ns(node), stamp_ns = (int64_t)stamp.tv_sec * 1000000000 + stamp.tv_nsec;
        CHECK(noctule_source_time_of(node, clocks[i][1], stamp_ns, &time) == NOCTULE_OK);
        CHECK(time.bound_ns > 0 && before <= time.time_ns + time.bound_ns && time.time_ns - time.bound_ns <= after);
    }
    CHECK_FAILS(noctule_source_time_of(node, 7, 0, &time), NOCTULE_ERROR_ARGUMENT, "no clock has the number 7");
    noctule_publisher_t *publisher = NULL;
    noctule_subscriber_t *subscriber = NULL;
    noctule_sample_info_t info;
    CHECK(noctule_publisher_open(node, "stamped", NULL, &publisher) == NOCTULE_OK);
    CHECK(noctule_subscriber_open(node, "stamped", NULL, &subscriber) == NOCTULE_OK);
    noctule_sample_release(until_received(publisher, subscriber, "first", &info));
    drain(subscriber);
    noctule_source_time_t given = {.time_ns = noctule_now_ns(node) - 1000, .bound_ns = 512, .sigma_ns = -1};
    char buffer[8];
    CHECK(noctule_publish_uncertain(publisher, "12345678", 8, &given) == NOCTULE_OK);
    CHECK(noctule_take_into(subscriber, buffer, 8, &info) == NOCTULE_OK);
    CHECK(info.source_time_ns == given.time_ns && info.bound_ns == 512 && info.sigma_ns == -1);
    noctule_subscriber_close(subscriber);
    noctule_publisher_close(publisher);
    noctule_node_close(node);
}

static void a_request_is_answered_once_and_what_has_no_answer_says_why(void) {
    noctule_node_t *node = open_node("requests");
    noctule_client_t *client = NULL;
    noctule_server_t *server = NULL;
    noctule_service_options_t options = {.request_type = "demo/Q", .request_hash = 1, .response_type = "demo/R", .response_hash = 2,
                                         .deadline_ns = 100000000};
    noctule_sample_info_t info;
    noctule_reply_t *reply = NULL;
    noctule_request_t *request = NULL;
    int64_t call = 0, other = 0, deadline_ns = 0;
    CHECK(noctule_client_open(node, "/add", &options, &client) == NOCTULE_OK);
    CHECK_FAILS(noctule_call(client, "ask", 3, &reply, &info), NOCTULE_ERROR_NO_REPLY, "no server was found within 100 ms");
    noctule_client_t *none = client;
    CHECK_FAILS(noctule_client_open(node, "/", &options, &none), NOCTULE_ERROR_ARGUMENT, "1 to 243 bytes");
    CHECK(none == NULL);
    CHECK(noctule_server_open(node, "/add", &options, &server) == NOCTULE_OK);
    for (int failing = 0; failing < 2; failing++) {
        CHECK(noctule_call_start(client, "ask", 3, 60000000000, &call) == NOCTULE_OK);
        int found = NOCTULE_NOTHING;
        while (found == NOCTULE_NOTHING) {
            CHECK(noctule_call_next(client, 5000000, &other, &reply, &info) == NOCTULE_NOTHING);
            found = noctule_server_receive(server, 5000000, &request, &info, &deadline_ns);
        }
        CHECK(found == NOCTULE_OK && info.length_bytes == 3 && memcmp(info.bytes, "ask", 3) == 0);
        CHECK(info.age_ns > 0 && info.bound_ns == 0 && deadline_ns == 60000000000);
        CHECK(noctule_server_is_cancelled(server, request) == 0);
        if (failing) {
            CHECK(noctule_server_fail(server, request, "on purpose") == NOCTULE_OK);
            CHECK_FAILS(noctule_call_next(client, -1, &other, &reply, &info), NOCTULE_ERROR_NO_REPLY, "failed: on purpose");
        } else {
            CHECK(noctule_server_reply(server, request, "answer", 6) == NOCTULE_OK);
            CHECK(noctule_call_next(client, -1, &other, &reply, &info) == NOCTULE_OK);
            CHECK(info.length_bytes == 6 && memcmp(info.bytes, "answer", 6) == 0 && info.age_ns > 0);
            noctule_reply_release(reply);
        }
        CHECK(other == call);
        CHECK_FAILS(noctule_server_reply(server, request, "answer", 6), NOCTULE_ERROR_ARGUMENT, "answered before");
        noctule_request_release(request);
    }
    CHECK(noctule_call_start(client, NULL, 0, 0, &call) == NOCTULE_OK);
    CHECK(noctule_call_cancel(client, call) == NOCTULE_OK && noctule_call_cancel(client, call) == NOCTULE_NOTHING);
    CHECK_FAILS(noctule_call_next(client, 0, &other, &reply, &info), NOCTULE_ERROR_NO_REPLY, "was cancelled");
    CHECK_FAILS(noctule_call(NULL, "ask", 3, &reply, &info), NOCTULE_ERROR_ARGUMENT, "client is NULL");
    noctule_server_close(server);
    noctule_client_close(client);
    noctule_node_close(node);
}

static int refuse_above_one(void *context, const char *name, const noctule_parameter_value_t *value, char *why, size_t why_bytes) {
    ++*(int *)context;
    if (strcmp(name, "speed") != 0 || value->real <= 1) return 0;
    snprintf(why, why_bytes, "%g is above 1", value->real);
    return 1;
}

static void count_name(void *context, const char *name) {
    *(size_t *)context += strlen(name);
}

static void parameters_are_declared_read_set_and_refused(void) {
    noctule_node_t *node = open_node("parameters");
    noctule_parameters_t *parameters = NULL;
    noctule_parameter_client_t *client = NULL;
    noctule_parameter_t *kept = NULL;
    int asked = 0;
    size_t letters = 0;
    const char *texts[2] = {"a", "bc"};
    noctule_parameter_value_t value = {.type = NOCTULE_PARAMETER_DOUBLE, .real = 0.5}, found;
    noctule_parameter_options_t options = {.description = "m/s", .has_range = true, .from = 0, .to = 2};
    CHECK(noctule_parameters_open(node, "/arm", &parameters) == NOCTULE_OK);
    CHECK(noctule_parameters_declare(parameters, "speed", &value, &options) == NOCTULE_OK);
    CHECK_FAILS(noctule_parameters_declare(parameters, "speed", &value, NULL), NOCTULE_ERROR_ARGUMENT, "declared already");
    noctule_parameter_value_t list = {.type = NOCTULE_PARAMETER_STRING_ARRAY, .elements = texts, .count = 2};
    CHECK(noctule_parameters_declare(parameters, "names", &list, NULL) == NOCTULE_OK);
    CHECK(noctule_parameters_get(parameters, "nothing", &kept, &found) == NOCTULE_NOTHING && kept == NULL);

    CHECK(noctule_parameter_client_open(node, "arm", 60000000000, &client) == NOCTULE_OK);
    CHECK(noctule_parameter_client_list(client, count_name, &letters) == NOCTULE_OK && letters == 10);
    CHECK(noctule_parameter_client_get(client, "names", &kept, &found) == NOCTULE_OK);
    CHECK(found.type == NOCTULE_PARAMETER_STRING_ARRAY && found.count == 2 && strcmp(((const char *const *)found.elements)[1], "bc") == 0);
    noctule_parameter_release(kept);
    CHECK(noctule_parameters_on_set(parameters, refuse_above_one, &asked) == NOCTULE_OK);
    value.real = 1.5;
    CHECK_FAILS(noctule_parameter_client_set(client, "speed", &value), NOCTULE_ERROR_ARGUMENT, "1.5 is above 1");
    CHECK_FAILS(noctule_parameters_set(parameters, "speed", &value), NOCTULE_ERROR_ARGUMENT, "1.5 is above 1");
    value.real = 2.5;
    CHECK_FAILS(noctule_parameter_client_set(client, "speed", &value), NOCTULE_ERROR_ARGUMENT, "can be 0 to 2");
    value.real = 0.75;
    CHECK(noctule_parameter_client_set(client, "speed", &value) == NOCTULE_OK && asked == 3);
    CHECK(noctule_parameters_get(parameters, "speed", &kept, &found) == NOCTULE_OK && found.real == 0.75);
    noctule_parameter_release(kept);
    value.type = 10;
    CHECK_FAILS(noctule_parameters_set(parameters, "speed", &value), NOCTULE_ERROR_ARGUMENT, "value->type is 10");
    noctule_parameter_client_close(client);
    noctule_parameters_close(parameters);
    CHECK(noctule_parameter_client_open(node, "/nobody", 100000000, &client) == NOCTULE_OK);
    CHECK_FAILS(noctule_parameter_client_list(client, count_name, &letters), NOCTULE_ERROR_NO_REPLY, "no server was found");
    noctule_parameter_client_close(client);
    noctule_node_close(node);
}

int main(int count, char **arguments) {
    domain = count > 1 ? (uint32_t)atoi(arguments[1]) : 0;
    CHECK(strcmp(noctule_last_error(), "") == 0);
    a_sample_is_borrowed_and_knows_its_age();
    a_copy_needs_a_buffer_that_is_long_enough();
    what_was_overwritten_is_counted_and_history_is_kept();
    the_latest_sample_is_taken_and_a_reader_that_is_behind_holds_up_its_publisher();
    bad_calls_are_refused_with_a_sentence();
    a_wait_set_finds_the_topic_that_has_a_sample();
    a_dispatcher_calls_until_it_is_stopped();
    a_descriptor_is_readable_when_a_sample_has_come_and_a_sample_is_lent();
    stamps_of_other_clocks_become_source_times();
    a_request_is_answered_once_and_what_has_no_answer_says_why();
    parameters_are_declared_read_set_and_refused();
    if (failures == 0) printf("c library: all tests passed\n");
    return failures != 0;
}
