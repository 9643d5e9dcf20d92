/* Helpers of programs with services as rmw_cyclonedds_cpp has them, on Cyclone DDS. */
#ifndef RMW_H
#define RMW_H
#include <dds/dds.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dds_entity_t participant;

static inline dds_entity_t checked(dds_entity_t entity, const char *what) {
    if (entity < 0) {
        fprintf(stderr, "%s: %s\n", what, dds_strretcode(entity));
        exit(1);
    }
    return entity;
}

static inline dds_entity_t topic(const dds_topic_descriptor_t *type, const char *prefix, const char *service, const char *suffix) {
    char name[256];
    snprintf(name, sizeof name, "%s%s%s", prefix, service, suffix);
    return checked(dds_create_topic(participant, type, name, NULL, NULL), "topic");
}

static inline dds_qos_t *qos(const char *user_data) {
    dds_qos_t *made = dds_create_qos();
    dds_qset_reliability(made, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
    dds_qset_history(made, DDS_HISTORY_KEEP_LAST, 100);
    dds_qset_userdata(made, user_data, strlen(user_data));
    return made;
}

static inline bool input_ended(void) {
    struct pollfd input = { .fd = 0, .events = POLLIN };
    return poll(&input, 1, 0) > 0;
}

static inline bool said(const dds_builtintopic_endpoint_t *endpoint, const char *key, char *value, size_t size) {
    void *bytes = NULL;
    size_t length = 0;
    if (!endpoint || !dds_qget_userdata(endpoint->qos, &bytes, &length) || !bytes) return false;
    char text[512] = { 0 };
    memcpy(text, bytes, length < sizeof text ? length : sizeof text - 1);
    dds_free(bytes);
    char *at = strstr(text, key);
    if (!at) return false;
    snprintf(value, size, "%s", at + strlen(key));
    value[strcspn(value, ";")] = 0;
    return true;
}

/* As rmw_cyclonedds_cpp: a reply goes out when the reader of the client that asked is found. */
static inline bool is_found(dds_entity_t replies, const char *client) {
    dds_instance_handle_t readers[64];
    dds_return_t count = dds_get_matched_subscriptions(replies, readers, 64);
    bool found = false;
    for (dds_return_t i = 0; i < count && i < 64 && !found; i++) {
        dds_builtintopic_endpoint_t *endpoint = dds_get_matched_subscription_data(replies, readers[i]);
        char name[64];
        found = said(endpoint, "clientid=", name, sizeof name) && strcmp(name, client) == 0;
        if (endpoint) dds_builtintopic_free_endpoint(endpoint);
    }
    return found;
}

/* Waits until the reader of the client that sent a request is found. */
static inline void wait_for_client(dds_entity_t requests, dds_entity_t replies, dds_instance_handle_t writer) {
    dds_builtintopic_endpoint_t *endpoint = dds_get_matched_publication_data(requests, writer);
    char client[64] = "";
    bool is_named = said(endpoint, "clientid=", client, sizeof client);
    if (endpoint) dds_builtintopic_free_endpoint(endpoint);
    for (int i = 0; is_named && i < 5000 && !is_found(replies, client); i++) dds_sleepfor(DDS_MSECS(2));
}

#endif
