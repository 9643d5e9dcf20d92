/* Noctule under test through its C API: what a program in C or C++ has of it. Samples are written into lent memory and read where they
 * lie, as iceoryx2's peer does; the age of each is read.
 *
 * A history of 8 samples or the window. The newest win, unless the scenario asks for `history=keep_all`: then the publisher waits for its
 * readers. */
#include "../harness/noctule_peer.h"

#include "topic.h"

#define HISTORY 8
#define LOOK_NS 1000000

static volatile int64_t age_sum_ns; /* ages are read, and must not be removed as unused */

static int failed(struct noctule_node *node, const char *call) {
    return noctule_fail(node, "%s: %s", call, topic_error());
}

static int peer_open(struct noctule_node *node) {
    static const enum topic_wait waits[] = {TOPIC_SPIN, TOPIC_BLOCK, TOPIC_HYBRID}; /* as enum noctule_wait */
    char name[128], publish[256], subscribe[256];
    snprintf(name, sizeof name, "%.90s-%d", node->session, (int)node->node);
    snprintf(publish, sizeof publish, "%.120s/%.120s", node->session, node->publish ? node->publish : "");
    snprintf(subscribe, sizeof subscribe, "%.120s/%.120s", node->session, node->subscribe ? node->subscribe : "");
    const struct topic_setup setup = {
        .node_name = name,
        .publish = node->publish ? publish : NULL,
        .subscribe = node->subscribe ? subscribe : NULL,
        .wait = waits[node->wait],
        .payload_bytes = (uint32_t)node->payload_bytes,
        .history = node->window > HISTORY ? (uint32_t)node->window : HISTORY,
        .keep_all = strcmp(noctule_option(node, "history", "keep_last"), "keep_all") == 0,
        .reliable = strcmp(noctule_option(node, "reliability", "best_effort"), "reliable") == 0,
    };
    if (topic_open(&setup) != 0) return failed(node, "a node with its topics");
    noctule_setting(node, "read", "in_place");
    noctule_setting(node, "history", "%u", setup.history);
    return 0;
}

static int peer_connect(struct noctule_node *node) {
    const struct timespec pause = {0, LOOK_NS};
    int64_t end_ns = noctule_now_ns() + NOCTULE_MATCH_TIMEOUT_NS;
    while (!topic_is_matched(node->readers)) {
        if (noctule_now_ns() > end_ns) return noctule_fail(node, "the other nodes did not come within 10 s");
        nanosleep(&pause, NULL);
    }
    return 0;
}

static int peer_send_in_place(struct noctule_node *node, size_t length) {
    void *place = topic_loan(length);
    if (place == NULL) return failed(node, "noctule_loan");
    noctule_fill(node, place);
    return topic_publish_loan(length) == 0 ? 0 : failed(node, "noctule_publish_loan");
}

static int receive(struct noctule_node *node, int64_t timeout_ns) {
    struct topic_sample sample;
    int got = topic_receive(timeout_ns, &sample);
    if (got <= 0) return got == 0 ? 0 : failed(node, "noctule_receive");
    age_sum_ns += sample.age_ns;
    noctule_deliver(node, sample.bytes, sample.length);
    topic_release(&sample);
    return 1;
}

static int peer_try_receive(struct noctule_node *node) { return receive(node, 0); }

static int peer_receive_blocking(struct noctule_node *node, int64_t timeout_ns) { return receive(node, timeout_ns); }

static void peer_close(struct noctule_node *node) {
    (void)node;
    topic_close();
}

int main(int argc, char **argv) {
    static const struct noctule_peer peer = {
        .name = "noctule_c", .links = "shm", .waits = "spin,block,hybrid", .modes = "round_trip,one_way,chain,fan_out",
        .options = "option.history=keep_last,keep_all option.reliability=best_effort,reliable",
        .max_payload_bytes = 64 << 20, .version = topic_version, .open = peer_open, .connect = peer_connect,
        .send_in_place = peer_send_in_place, .try_receive = peer_try_receive,
        .receive_blocking = peer_receive_blocking, .close = peer_close,
    };
    return noctule_peer_main(argc, argv, &peer);
}
