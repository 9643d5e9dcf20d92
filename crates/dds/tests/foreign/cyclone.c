/* A foreign program: Cyclone DDS, one topic of std_msgs/msg/String; its arguments say what it does.
 *
 *   cyclone write DOMAIN TOPIC reliable|best_effort volatile|transient_local COUNT TEXT
 *   cyclone read  DOMAIN TOPIC reliable|best_effort volatile|transient_local COUNT [TYPE]
 *   cyclone stream DOMAIN TOPIC reliable|best_effort volatile|transient_local COUNT TEXT
 *   cyclone types DOMAIN TOPIC reliable|best_effort volatile|transient_local COUNT USER_DATA
 *   cyclone nodes DOMAIN TOPIC reliable|best_effort volatile|transient_local COUNT NAME [owns]
 *   cyclone ping  DOMAIN TOPIC reliable|best_effort volatile|transient_local COUNT
 *
 * write: waits for a reader unless its samples are kept for late ones, writes "TEXT 0", "TEXT 1", …, then each line
 * of its input until that ends. stream: waits for no reader, writes COUNT copies of TEXT as one sample every 10 ms until its input
 * ends, and prints "readers N" when the number of its readers changes. read: prints COUNT samples, one per line, and ends.
 * types: a reader with that USER_DATA; prints the USER_DATA of the writer that it matches, COUNT times at most until its input ends. nodes: writes ROS 2's list of nodes with
 * one node, NAME, and prints each list that comes as "node NAMESPACE NAME READERS WRITERS [GID of the first writer]" until COUNT nodes were
 * printed; then waits for its input's end. With "owns" the node has a writer of TOPIC,
 * a list without nodes is printed as "none", and COUNT does not matter. ping: COUNT round trips from TOPICping to TOPICpong,
 * then "rtt_ns MIN P50 P99". Whatever takes longer than 30 s fails. */
#define _POSIX_C_SOURCE 200809L
#include <dds/dds.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ros_graph.h"
#include "ros_string.h"

#define TIMEOUT DDS_SECS(30)

static dds_entity_t participant;
static dds_qos_t *qos;
static const char *type_name; /* instead of the string's, if any */

static void fail(const char *what, dds_return_t code) {
    fprintf(stderr, "%s: %s\n", what, dds_strretcode(code));
    exit(1);
}

static dds_entity_t topic(const char *name, const char *suffix) {
    char full[256];
    snprintf(full, sizeof full, "%s%s", name, suffix);
    dds_topic_descriptor_t named = std_msgs_msg_dds__String__desc;
    if (type_name) named.m_typename = type_name;
    dds_entity_t made = dds_create_topic(participant, &named, full, NULL, NULL);
    if (made < 0) fail("topic", made);
    return made;
}

static void wait_for(dds_entity_t entity, uint32_t status) {
    dds_entity_t set = dds_create_waitset(participant);
    dds_set_status_mask(entity, status);
    dds_waitset_attach(set, entity, 0);
    dds_return_t ready = dds_waitset_wait(set, NULL, 0, TIMEOUT);
    dds_delete(set);
    if (ready <= 0) {
        fprintf(stderr, "nothing came in 30 s\n");
        exit(1);
    }
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void write_one(dds_entity_t writer, char *text) {
    std_msgs_msg_dds__String_ sample = { .data = text };
    dds_return_t result = dds_write(writer, &sample);
    if (result < 0) fail("write", result);
}

static void write_all(const char *name, int count, const char *text, bool keeps) {
    dds_entity_t writer = dds_create_writer(participant, topic(name, ""), qos, NULL);
    if (writer < 0) fail("writer", writer);
    if (!keeps) wait_for(writer, DDS_PUBLICATION_MATCHED_STATUS);
    static char line[1 << 20];
    for (int i = 0; i < count; i++) {
        snprintf(line, sizeof line, "%s %d", text, i);
        write_one(writer, line);
    }
    printf("written\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        write_one(writer, line);
    }
}

static void stream(const char *name, int count, const char *text) {
    dds_entity_t writer = dds_create_writer(participant, topic(name, ""), qos, NULL);
    if (writer < 0) fail("writer", writer);
    size_t length = strlen(text);
    char *copies = malloc(length * (size_t)count + 1);
    for (int i = 0; i < count; i++) memcpy(copies + length * (size_t)i, text, length);
    copies[length * (size_t)count] = 0;
    struct pollfd input = { .fd = 0, .events = POLLIN };
    for (int before = -1; poll(&input, 1, 10) == 0;) {
        dds_publication_matched_status_t matched;
        dds_get_publication_matched_status(writer, &matched);
        if ((int)matched.current_count != before) {
            before = (int)matched.current_count;
            printf("readers %d\n", before);
            fflush(stdout);
        }
        write_one(writer, copies);
    }
    free(copies);
}

static int take(dds_entity_t reader, bool print) {
    void *samples[16] = { NULL };
    dds_sample_info_t infos[16];
    int taken = dds_take(reader, samples, infos, 16, 16), valid = 0;
    if (taken < 0) fail("take", taken);
    for (int i = 0; i < taken; i++) {
        if (!infos[i].valid_data) continue;
        valid++;
        if (print) printf("%s\n", ((std_msgs_msg_dds__String_ *)samples[i])->data);
    }
    if (print) fflush(stdout);
    if (taken > 0) dds_return_loan(reader, samples, taken);
    return valid;
}

static void read_all(const char *name, int count) {
    dds_entity_t reader = dds_create_reader(participant, topic(name, ""), qos, NULL);
    if (reader < 0) fail("reader", reader);
    wait_for(reader, DDS_SUBSCRIPTION_MATCHED_STATUS);
    printf("matched\n");
    fflush(stdout);
    for (int got = 0; got < count;) {
        int taken = take(reader, true);
        if (taken == 0) wait_for(reader, DDS_DATA_AVAILABLE_STATUS);
        got += taken;
    }
}

static void types(const char *name, int count, const char *user_data) {
    dds_qset_userdata(qos, user_data, strlen(user_data));
    dds_entity_t reader = dds_create_reader(participant, topic(name, ""), qos, NULL);
    if (reader < 0) fail("reader", reader);
    for (int i = 0; i < count; i++) {
        wait_for(reader, DDS_SUBSCRIPTION_MATCHED_STATUS);
        dds_subscription_matched_status_t status; /* taken, so that the next wait is for the next match */
        dds_get_subscription_matched_status(reader, &status);
        dds_instance_handle_t writer;
        if (dds_get_matched_publications(reader, &writer, 1) != 1) { i--; continue; }
        dds_builtintopic_endpoint_t *endpoint = dds_get_matched_publication_data(reader, writer);
        void *bytes = NULL;
        size_t size = 0;
        if (endpoint && dds_qget_userdata(endpoint->qos, &bytes, &size) && bytes) printf("%.*s\n", (int)size, (char *)bytes);
        else printf("nothing\n");
        fflush(stdout);
        dds_free(bytes);
        if (endpoint) dds_builtintopic_free_endpoint(endpoint);
    }
    while (getchar() != EOF) {}
}

static void nodes(int count, char *name, const char *owned) {
    dds_entity_t list = dds_create_topic(participant, &rmw_dds_common_msg_dds__ParticipantEntitiesInfo__desc,
                                         "ros_discovery_info", NULL, NULL);
    if (list < 0) fail("topic", list);
    dds_entity_t writer = dds_create_writer(participant, list, qos, NULL);
    dds_qset_ignorelocal(qos, DDS_IGNORELOCAL_PARTICIPANT);
    dds_entity_t reader = dds_create_reader(participant, list, qos, NULL);
    if (writer < 0 || reader < 0) fail("list", writer < 0 ? writer : reader);
    rmw_dds_common_msg_dds__NodeEntitiesInfo_ node = { .node_namespace = "/far", .node_name = name };
    rmw_dds_common_msg_dds__ParticipantEntitiesInfo_ sample = { 0 };
    rmw_dds_common_msg_dds__Gid_ gid;
    if (owned) {
        dds_guid_t guid;
        dds_return_t found = dds_get_guid(dds_create_writer(participant, topic(owned, ""), qos, NULL), &guid);
        if (found < 0) fail("writer", found);
        memcpy(gid.data, guid.v, 16);
        node.writer_gid_seq._buffer = &gid;
        node.writer_gid_seq._length = node.writer_gid_seq._maximum = 1;
    }
    sample.node_entities_info_seq._buffer = &node;
    sample.node_entities_info_seq._length = sample.node_entities_info_seq._maximum = 1;
    dds_return_t result = dds_write(writer, &sample);
    if (result < 0) fail("write", result);
    for (int got = 0; owned || got < count;) {
        void *samples[1] = { NULL };
        dds_sample_info_t info;
        int taken = dds_take(reader, samples, &info, 1, 1);
        if (taken <= 0 && owned) {
            struct pollfd input = { .fd = 0, .events = POLLIN };
            if (poll(&input, 1, 10) != 0) return;
            continue;
        }
        if (taken <= 0) { wait_for(reader, DDS_DATA_AVAILABLE_STATUS); continue; }
        rmw_dds_common_msg_dds__ParticipantEntitiesInfo_ *came = samples[0];
        if (owned && info.valid_data && came->node_entities_info_seq._length == 0) printf("none\n");
        for (uint32_t i = 0; info.valid_data && i < came->node_entities_info_seq._length; i++, got++) {
            rmw_dds_common_msg_dds__NodeEntitiesInfo_ *of = &came->node_entities_info_seq._buffer[i];
            printf("node %s %s %u %u ", of->node_namespace, of->node_name, of->reader_gid_seq._length,
                   of->writer_gid_seq._length);
            for (int k = 0; of->writer_gid_seq._length > 0 && k < 16; k++) printf("%02x", of->writer_gid_seq._buffer[0].data[k]);
            printf("\n");
        }
        fflush(stdout);
        dds_return_loan(reader, samples, taken);
    }
    while (getchar() != EOF) {}
}

static void ping(const char *name, int count) {
    dds_entity_t writer = dds_create_writer(participant, topic(name, "ping"), qos, NULL);
    dds_entity_t reader = dds_create_reader(participant, topic(name, "pong"), qos, NULL);
    wait_for(writer, DDS_PUBLICATION_MATCHED_STATUS);
    wait_for(reader, DDS_SUBSCRIPTION_MATCHED_STATUS);
    sleep(1); /* the other side's matching is not to be seen from here */
    dds_set_status_mask(reader, DDS_DATA_AVAILABLE_STATUS);
    dds_entity_t set = dds_create_waitset(participant);
    dds_entity_t condition = dds_create_readcondition(reader, DDS_ANY_STATE);
    dds_waitset_attach(set, condition, 0);
    int64_t *trips = malloc(sizeof *trips * (size_t)count);
    char text[65];
    memset(text, 'x', 64);
    text[64] = 0;
    int lost = 0, done = 0;
    for (int i = 0; i < count; i++) {
        std_msgs_msg_dds__String_ sample = { .data = text };
        int64_t start = now_ns();
        dds_write(writer, &sample);
        if (dds_waitset_wait(set, NULL, 0, DDS_SECS(1)) <= 0) { lost++; continue; }
        take(reader, false);
        trips[done++] = now_ns() - start;
    }
    qsort(trips, (size_t)done, sizeof *trips, by_size);
    if (done > 0)
        printf("rtt_ns %lld %lld %lld lost %d\n", (long long)trips[0], (long long)trips[done / 2],
               (long long)trips[done * 99 / 100], lost);
    free(trips);
}

int main(int argc, char **argv) {
    if (argc < 7) return fprintf(stderr, "usage: see the first lines of cyclone.c\n"), 2;
    bool reliable = strcmp(argv[4], "reliable") == 0, keeps = strcmp(argv[5], "transient_local") == 0;
    int count = atoi(argv[6]);
    participant = dds_create_participant((dds_domainid_t)atoi(argv[2]), NULL, NULL);
    if (participant < 0) fail("participant", participant);
    qos = dds_create_qos();
    dds_qset_reliability(qos, reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT, DDS_SECS(1));
    dds_qset_durability(qos, keeps ? DDS_DURABILITY_TRANSIENT_LOCAL : DDS_DURABILITY_VOLATILE);
    dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 100);
    dds_qset_durability_service(qos, 0, DDS_HISTORY_KEEP_LAST, 100, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED,
                                DDS_LENGTH_UNLIMITED); /* as ROS 2 does: late readers get all of the history */
    if (strcmp(argv[1], "write") == 0) write_all(argv[3], count, argc > 7 ? argv[7] : "", keeps);
    else if (strcmp(argv[1], "types") == 0) types(argv[3], count, argc > 7 ? argv[7] : "");
    else if (strcmp(argv[1], "nodes") == 0) nodes(count, argc > 7 ? argv[7] : "node", argc > 8 ? argv[3] : NULL);
    else if (strcmp(argv[1], "stream") == 0) stream(argv[3], count, argc > 7 ? argv[7] : "");
    else if (strcmp(argv[1], "read") == 0) type_name = argc > 7 ? argv[7] : NULL, read_all(argv[3], count);
    else ping(argv[3], count);
    dds_delete_qos(qos);
    dds_delete(participant);
    return 0;
}
