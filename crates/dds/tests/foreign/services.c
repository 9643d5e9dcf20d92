/* A foreign program: a service as rmw_cyclonedds_cpp has it, on Cyclone DDS.
 *
 *   services serve DOMAIN SERVICE
 *   services call  DOMAIN SERVICE NUMBER COUNT
 *
 * serve: answers with a + b, once the client's reader is found; prints "asked A B" for each request, and never answers one whose a is 99.
 * call: the client NUMBER waits for a server, prints "found", sends COUNT requests (a = 100 * NUMBER + i, b = 1) and prints "I SUM" for each reply
 * that is its own, in the order in which they come, then "others N": replies to other clients that it saw. Both end with their input. */
#define _POSIX_C_SOURCE 200809L
#include "rmw.h"
#include "ros_services.h"

typedef example_interfaces_srv_dds__AddTwoInts_Request_ request_t;
typedef example_interfaces_srv_dds__AddTwoInts_Response_ response_t;

static void serve(const char *service) {
    dds_qos_t *ours = qos("serviceid=5.0.1;");
    dds_entity_t replies = checked(dds_create_writer(participant, topic(&example_interfaces_srv_dds__AddTwoInts_Response__desc, "rr", service, "Reply"), ours, NULL), "writer");
    dds_entity_t requests = checked(dds_create_reader(participant, topic(&example_interfaces_srv_dds__AddTwoInts_Request__desc, "rq", service, "Request"), ours, NULL), "reader");
    while (!input_ended()) {
        void *samples[1] = { NULL };
        dds_sample_info_t info;
        if (dds_take(requests, samples, &info, 1, 1) <= 0) { dds_sleepfor(DDS_MSECS(2)); continue; }
        if (info.valid_data) {
            request_t *request = samples[0];
            printf("asked %lld %lld\n", (long long)request->a, (long long)request->b);
            fflush(stdout);
            wait_for_client(requests, replies, info.publication_handle);
            response_t response = { .client = request->client, .number = request->number, .sum = request->a + request->b };
            if (request->a != 99) checked(dds_write(replies, &response), "reply");
        }
        dds_return_loan(requests, samples, 1);
    }
    dds_delete_qos(ours);
}

static void call(const char *service, int number, int count) {
    char id[64];
    snprintf(id, sizeof id, "clientid=c.%x;typehash=;", number);
    dds_qos_t *ours = qos(id);
    dds_entity_t replies = checked(dds_create_reader(participant, topic(&example_interfaces_srv_dds__AddTwoInts_Response__desc, "rr", service, "Reply"), ours, NULL), "reader");
    dds_entity_t requests = checked(dds_create_writer(participant, topic(&example_interfaces_srv_dds__AddTwoInts_Request__desc, "rq", service, "Request"), ours, NULL), "writer");
    while (dds_get_matched_subscriptions(requests, NULL, 0) <= 0 || dds_get_matched_publications(replies, NULL, 0) <= 0) {
        if (input_ended()) exit(0);
        dds_sleepfor(DDS_MSECS(2));
    }
    /* rmw_service_server_is_available: both ends of one server. */
    dds_instance_handle_t reader, writer;
    char of_reader[64], of_writer[64];
    dds_get_matched_subscriptions(requests, &reader, 1);
    dds_get_matched_publications(replies, &writer, 1);
    if (!said(dds_get_matched_subscription_data(requests, reader), "serviceid=", of_reader, sizeof of_reader) ||
        !said(dds_get_matched_publication_data(replies, writer), "serviceid=", of_writer, sizeof of_writer) ||
        strcmp(of_reader, of_writer) != 0) {
        fprintf(stderr, "the two ends of the server do not belong together\n");
        exit(1);
    }
    printf("found\n");
    fflush(stdout);
    uint64_t me = 0xABCD000000000000u + (uint64_t)number;
    for (int i = 0; i < count; i++) {
        request_t request = { .client = me, .number = i + 1, .a = 100 * number + i, .b = 1 };
        checked(dds_write(requests, &request), "request");
    }
    int others = 0;
    for (int got = 0; got < count && !input_ended();) {
        void *samples[1] = { NULL };
        dds_sample_info_t info;
        if (dds_take(replies, samples, &info, 1, 1) <= 0) { dds_sleepfor(DDS_MSECS(2)); continue; }
        response_t *response = samples[0];
        if (info.valid_data && response->client != me) others++;
        if (info.valid_data && response->client == me) {
            printf("%lld %lld\n", (long long)response->number, (long long)response->sum);
            got++;
        }
        fflush(stdout);
        dds_return_loan(replies, samples, 1);
    }
    printf("others %d\n", others);
    fflush(stdout);
    while (!input_ended()) dds_sleepfor(DDS_MSECS(2));
    dds_delete_qos(ours);
}

int main(int argc, char **argv) {
    if (argc < 4) return fprintf(stderr, "usage: see the first lines of services.c\n"), 2;
    participant = checked(dds_create_participant((dds_domainid_t)atoi(argv[2]), NULL, NULL), "participant");
    if (strcmp(argv[1], "serve") == 0) serve(argv[3]);
    else call(argv[3], argc > 4 ? atoi(argv[4]) : 1, argc > 5 ? atoi(argv[5]) : 1);
    dds_delete(participant);
    return 0;
}
