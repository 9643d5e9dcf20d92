/* Options of a node through the C header: each changes what it says it changes. Takes the domain as its argument, so that tests of one
 * machine do not reach each other. */
#define _POSIX_C_SOURCE 200112L

#include "check.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* The user that may do nothing, nobody, and the group of the same number. */
#define STRANGER 65534

static void ignore(void *context, const char *kind, const char *sentence) {
    (void)context, (void)kind, (void)sentence;
}

static noctule_node_t *open_node(noctule_node_options_t options) {
    noctule_node_t *node = NULL;
    options.on_notice = ignore;
    if (noctule_node_open("options", &options, &node) != NOCTULE_OK) {
        fprintf(stderr, "%s\n", noctule_last_error());
        exit(1);
    }
    return node;
}

/* How the first sample comes that one node publishes and the other reads. */
static int route(noctule_node_t *from, noctule_node_t *to) {
    noctule_publisher_t *publisher = NULL;
    noctule_subscriber_t *subscriber = NULL;
    noctule_sample_t *sample = NULL;
    noctule_sample_info_t info;
    CHECK(noctule_publisher_open(from, "route", NULL, &publisher) == NOCTULE_OK);
    CHECK(noctule_subscriber_open(to, "route", NULL, &subscriber) == NOCTULE_OK);
    do {
        CHECK(noctule_publish(publisher, "x", 1) == NOCTULE_OK);
    } while (noctule_receive(subscriber, 5000000, &sample, &info) == NOCTULE_NOTHING);
    noctule_sample_release(sample);
    noctule_subscriber_close(subscriber);
    noctule_publisher_close(publisher);
    return info.route;
}

static void a_node_exchanges_samples_as_its_options_say(uint32_t domain) {
    noctule_node_t *plain = open_node((noctule_node_options_t){.domain = domain});
    noctule_node_t *loopback = open_node((noctule_node_options_t){.domain = domain, .interface_address = "127.0.0.1"});
    noctule_node_t *without = open_node((noctule_node_options_t){.domain = domain, .without_shared_memory = true});
    CHECK(route(plain, loopback) == NOCTULE_ROUTE_SHARED_MEMORY && route(loopback, plain) == NOCTULE_ROUTE_SHARED_MEMORY);
    CHECK(route(plain, without) == NOCTULE_ROUTE_UDP && route(without, plain) == NOCTULE_ROUTE_UDP);
    noctule_node_t *none = NULL;
    noctule_node_options_t wrong = {.domain = domain, .interface_address = "lo"};
    CHECK(noctule_node_open("wrong", &wrong, &none) == NOCTULE_ERROR_ARGUMENT && none == NULL);
    CHECK(strstr(noctule_last_error(), "lo is no IPv4 address") != NULL);
    wrong.interface_address = "fe80::1";
    CHECK(noctule_node_open("wrong", &wrong, &none) == NOCTULE_ERROR_ARGUMENT && none == NULL);
    CHECK(strstr(noctule_last_error(), "IPv6 is not supported here") != NULL);
    noctule_node_close(without);
    noctule_node_close(loopback);
    noctule_node_close(plain);
}

/* Two nodes that share no memory: what went between them, and how long a question takes. */
static void a_node_is_pinged_and_its_link_counted(uint32_t domain) {
    noctule_node_t *plain = open_node((noctule_node_options_t){.domain = domain});
    noctule_node_t *without = open_node((noctule_node_options_t){.domain = domain, .without_shared_memory = true});
    noctule_node_id_t id, nobody = {.bytes = {0}};
    noctule_link_counters_t link;
    noctule_exchange_t times;
    CHECK(route(without, plain) == NOCTULE_ROUTE_UDP && noctule_node_id(without, &id) == NOCTULE_OK);
    CHECK(noctule_link_counters(plain, &id, &link) == NOCTULE_OK && link.delivered >= 1 && link.received_datagrams >= 1);
    CHECK(noctule_link_counters(plain, &nobody, &link) == NOCTULE_NOTHING);
    CHECK(noctule_ping(plain, &id, INT64_C(60000000000), &times) == NOCTULE_OK);
    CHECK(times.sent_ns <= times.arrived_ns && times.arrived_ns <= times.replied_ns && times.replied_ns <= times.received_ns);
    CHECK(noctule_ping(plain, &nobody, 1, &times) == NOCTULE_ERROR_ARGUMENT && strstr(noctule_last_error(), "not known") != NULL);
    CHECK(noctule_ping(plain, &id, -1, &times) == NOCTULE_ERROR_ARGUMENT && strstr(noctule_last_error(), "negative") != NULL);
    noctule_node_close(without);
    noctule_node_close(plain);
}

/* Reads a sample as another user's process, whose exit code is the route of its first sample. */
static void read_as_stranger(uint32_t domain) {
    noctule_subscriber_t *subscriber = NULL;
    noctule_sample_t *sample = NULL;
    noctule_sample_info_t info;
    if (setgid(STRANGER) != 0 || setuid(STRANGER) != 0) _exit(3);
    noctule_node_t *node = open_node((noctule_node_options_t){.domain = domain});
    CHECK(noctule_subscriber_open(node, "shared", NULL, &subscriber) == NOCTULE_OK);
    CHECK(noctule_receive(subscriber, -1, &sample, &info) == NOCTULE_OK);
    _exit(failures == 0 ? info.route : 4);
}

static void a_group_that_is_named_reads_shared_memory(uint32_t domain) {
    if (geteuid() != 0) return; /* Only root can become another user. */
    for (int is_named = 0; is_named < 2; is_named++) {
        int status = 0;
        const pid_t child = fork();
        if (child == 0) read_as_stranger(domain);
        noctule_node_options_t options = {.domain = domain, .shares_with_group = is_named == 1, .group = STRANGER};
        noctule_node_t *node = open_node(options);
        noctule_publisher_t *publisher = NULL;
        CHECK(noctule_publisher_open(node, "shared", NULL, &publisher) == NOCTULE_OK);
        while (waitpid(child, &status, WNOHANG) == 0) {
            CHECK(noctule_publish(publisher, "x", 1) == NOCTULE_OK);
            poll(NULL, 0, 1);
        }
        const int expected = is_named == 1 ? NOCTULE_ROUTE_SHARED_MEMORY : NOCTULE_ROUTE_UDP;
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected);
        noctule_publisher_close(publisher);
        noctule_node_close(node);
    }
}

int main(int count, char **arguments) {
    const uint32_t domain = count > 1 ? (uint32_t)atoi(arguments[1]) : 0;
    a_node_exchanges_samples_as_its_options_say(domain);
    a_group_that_is_named_reads_shared_memory(domain);
    a_node_is_pinged_and_its_link_counted(domain);
    if (failures == 0) printf("c options: all tests passed\n");
    return failures != 0;
}
