/* A foreign program: an action as rmw_cyclonedds_cpp has it, on Cyclone DDS.
 *
 *   action serve DOMAIN ACTION
 *   action send  DOMAIN ACTION TO
 *
 * serve: accepts each goal, counts to its number with feedback and succeeds; one of 1000 and more goes on until it is canceled. send: sends one goal,
 * prints "accepted A", "feedback AT" and "result STATUS REACHED" as they come; a goal of 1000 and more is canceled after its first feedback, "canceling
 * CODE COUNT". Both end with their input. */
#define _POSIX_C_SOURCE 200809L
#include "rmw.h"
#include "ros_action.h"

typedef demo_action_dds__Count_SendGoal_Request_ send_request_t;
typedef demo_action_dds__Count_SendGoal_Response_ send_response_t;
typedef demo_action_dds__Count_GetResult_Request_ get_request_t;
typedef demo_action_dds__Count_GetResult_Response_ get_response_t;
typedef demo_action_dds__Count_FeedbackMessage_ feedback_t;
typedef action_msgs_srv_dds__CancelGoal_Request_ cancel_request_t;
typedef action_msgs_srv_dds__CancelGoal_Response_ cancel_response_t;
typedef action_msgs_msg_dds__GoalStatus_ status_t;
typedef action_msgs_msg_dds__GoalStatusArray_ statuses_t;
typedef action_msgs_msg_dds__GoalInfo_ info_t;

enum { EXECUTING = 2, CANCELING = 3, SUCCEEDED = 4, CANCELED = 5 };

/* Reader and writer of one service. */
typedef struct { dds_entity_t reader, writer; } ends_t;

static ends_t ends(const char *action, const char *last, bool is_server, const dds_topic_descriptor_t *request,
                   const dds_topic_descriptor_t *response) {
    char service[200], id[64];
    snprintf(service, sizeof service, "%s/_action/%s", action, last);
    snprintf(id, sizeof id, is_server ? "serviceid=5.0.%x;" : "clientid=c.%x;", (unsigned)last[0]);
    dds_qos_t *ours = qos(id);
    dds_entity_t requests = topic(request, "rq", service, "Request"), replies = topic(response, "rr", service, "Reply");
    ends_t made = { checked(dds_create_reader(participant, is_server ? requests : replies, ours, NULL), "reader"),
                    checked(dds_create_writer(participant, is_server ? replies : requests, ours, NULL), "writer") };
    dds_delete_qos(ours);
    return made;
}

static ends_t send_goal, get_result, cancel_goal;

static void open_services(const char *action, bool is_server) {
    send_goal = ends(action, "send_goal", is_server, &demo_action_dds__Count_SendGoal_Request__desc, &demo_action_dds__Count_SendGoal_Response__desc);
    get_result = ends(action, "get_result", is_server, &demo_action_dds__Count_GetResult_Request__desc, &demo_action_dds__Count_GetResult_Response__desc);
    cancel_goal = ends(action, "cancel_goal", is_server, &action_msgs_srv_dds__CancelGoal_Request__desc, &action_msgs_srv_dds__CancelGoal_Response__desc);
}

/* The next sample, to be returned; null if there is none. */
static void *taken(dds_entity_t reader, dds_sample_info_t *info) {
    void *samples[1] = { NULL };
    while (dds_take(reader, samples, info, 1, 1) > 0) {
        if (info->valid_data) return samples[0];
        dds_return_loan(reader, samples, 1);
    }
    return NULL;
}

static void give_back(dds_entity_t reader, void *sample) {
    dds_return_loan(reader, &sample, 1);
}

/* The one goal of a server. */
static struct { status_t known; uint32_t to; get_request_t waiting; bool is_waited_for; dds_instance_handle_t client; } goal;

static void tell(dds_entity_t status, int now) {
    goal.known.status = (uint8_t)now;
    statuses_t all = { .list = { ._maximum = 1, ._length = 1, ._buffer = &goal.known } };
    checked(dds_write(status, &all), "status");
}

static void answer_result(void) {
    if (!goal.is_waited_for || goal.known.status < SUCCEEDED) return;
    goal.is_waited_for = false;
    wait_for_client(get_result.reader, get_result.writer, goal.client);
    get_response_t response = { .client = goal.waiting.client, .number = goal.waiting.number, .status = goal.known.status, .reached = goal.to };
    checked(dds_write(get_result.writer, &response), "result");
}

static void begin(const send_request_t *request, dds_instance_handle_t client, dds_entity_t feedback, dds_entity_t status) {
    memcpy(goal.known.info.goal, request->goal, 16);
    goal.known.info.sec = 17;
    goal.to = request->to;
    wait_for_client(send_goal.reader, send_goal.writer, client);
    send_response_t response = { .client = request->client, .number = request->number, .accepted = true, .sec = 17 };
    checked(dds_write(send_goal.writer, &response), "acceptance");
    tell(status, EXECUTING);
    /* Volatile: a client that does not read yet would miss it. */
    while (dds_get_matched_subscriptions(feedback, NULL, 0) <= 0 && !input_ended()) dds_sleepfor(DDS_MSECS(2));
    feedback_t progress;
    memcpy(progress.goal, request->goal, 16);
    for (progress.at = 1; progress.at <= request->to && progress.at <= 3; progress.at++)
        checked(dds_write(feedback, &progress), "feedback");
    if (request->to < 1000) tell(status, SUCCEEDED);
}

static void cancel(const cancel_request_t *request, dds_instance_handle_t client, dds_entity_t status) {
    bool is_known = memcmp(request->info.goal, goal.known.info.goal, 16) == 0 && goal.known.status == EXECUTING;
    cancel_response_t response = { .client = request->client, .number = request->number, .code = is_known ? 0 : 2 };
    response.goals._buffer = &goal.known.info;
    response.goals._length = response.goals._maximum = is_known;
    wait_for_client(cancel_goal.reader, cancel_goal.writer, client);
    checked(dds_write(cancel_goal.writer, &response), "cancellation");
    if (!is_known) return;
    tell(status, CANCELING);
    tell(status, CANCELED);
}

static void serve(dds_entity_t feedback, dds_entity_t status) {
    while (!input_ended()) {
        dds_sample_info_t info;
        send_request_t *sent = taken(send_goal.reader, &info);
        if (sent) { begin(sent, info.publication_handle, feedback, status); give_back(send_goal.reader, sent); }
        get_request_t *wanted = taken(get_result.reader, &info);
        if (wanted) {
            goal.waiting = *wanted;
            goal.is_waited_for = true;
            goal.client = info.publication_handle;
            give_back(get_result.reader, wanted);
        }
        cancel_request_t *canceling = taken(cancel_goal.reader, &info);
        if (canceling) { cancel(canceling, info.publication_handle, status); give_back(cancel_goal.reader, canceling); }
        answer_result();
        dds_sleepfor(DDS_MSECS(2));
    }
}

static void wait_for_server(ends_t of) {
    while (dds_get_matched_subscriptions(of.writer, NULL, 0) <= 0 || dds_get_matched_publications(of.reader, NULL, 0) <= 0) {
        if (input_ended()) exit(0);
        dds_sleepfor(DDS_MSECS(2));
    }
}

static void send_one(uint32_t to, dds_entity_t feedback, dds_entity_t status) {
    wait_for_server(send_goal);
    wait_for_server(get_result);
    wait_for_server(cancel_goal);
    while (dds_get_matched_publications(feedback, NULL, 0) <= 0) dds_sleepfor(DDS_MSECS(2));
    uint64_t me = 0xABCD000000000000u;
    uint8_t number = to >= 1000 ? 8 : 7;
    send_request_t request = { .client = me, .number = 1, .goal = { 7, number }, .to = to };
    checked(dds_write(send_goal.writer, &request), "goal");
    bool is_canceled = false;
    while (!input_ended()) {
        dds_sample_info_t info;
        send_response_t *accepted = taken(send_goal.reader, &info);
        if (accepted && accepted->client == me) {
            printf("accepted %d\n", accepted->accepted);
            get_request_t wanted = { .client = me, .number = 2, .goal = { 7, number } };
            checked(dds_write(get_result.writer, &wanted), "question");
        }
        if (accepted) give_back(send_goal.reader, accepted);
        feedback_t *progress = taken(feedback, &info);
        if (progress) {
            printf("feedback %u\n", progress->at);
            give_back(feedback, progress);
            if (to >= 1000 && !is_canceled) {
                is_canceled = true;
                cancel_request_t canceling = { .client = me, .number = 3, .info = { .goal = { 7, number } } };
                checked(dds_write(cancel_goal.writer, &canceling), "cancellation");
            }
        }
        cancel_response_t *canceled = taken(cancel_goal.reader, &info);
        if (canceled) { printf("canceling %d %u\n", canceled->code, canceled->goals._length); give_back(cancel_goal.reader, canceled); }
        get_response_t *result = taken(get_result.reader, &info);
        if (result) { printf("result %d %u\n", result->status, result->reached); give_back(get_result.reader, result); }
        statuses_t *all = taken(status, &info);
        if (all) { for (uint32_t i = 0; i < all->list._length; i++) printf("status %d\n", all->list._buffer[i].status); give_back(status, all); }
        fflush(stdout);
        dds_sleepfor(DDS_MSECS(2));
    }
}

int main(int argc, char **argv) {
    if (argc < 4) return fprintf(stderr, "usage: see the first lines of action.c\n"), 2;
    bool is_server = strcmp(argv[1], "serve") == 0;
    participant = checked(dds_create_participant((dds_domainid_t)atoi(argv[2]), NULL, NULL), "participant");
    open_services(argv[3], is_server);
    dds_qos_t *kept = qos("typehash=;");
    dds_entity_t feedback_topic = topic(&demo_action_dds__Count_FeedbackMessage__desc, "rt", argv[3], "/_action/feedback");
    dds_entity_t status_topic = topic(&action_msgs_msg_dds__GoalStatusArray__desc, "rt", argv[3], "/_action/status");
    dds_entity_t feedback = checked(is_server ? dds_create_writer(participant, feedback_topic, kept, NULL) : dds_create_reader(participant, feedback_topic, kept, NULL), "feedback");
    dds_qset_durability(kept, DDS_DURABILITY_TRANSIENT_LOCAL);
    dds_qset_history(kept, DDS_HISTORY_KEEP_LAST, 1);
    dds_entity_t status = checked(is_server ? dds_create_writer(participant, status_topic, kept, NULL) : dds_create_reader(participant, status_topic, kept, NULL), "status");
    dds_delete_qos(kept);
    if (is_server) serve(feedback, status);
    else send_one((uint32_t)(argc > 4 ? atoi(argv[4]) : 1), feedback, status);
    dds_delete(participant);
    return 0;
}
