/* LCM under test: UDP multicast through liblcm.
 *
 * LCM has neither discovery nor acknowledgements. Before `ready`, writer and readers shake hands on channels of
 * their own: the writer probes until each reader has been heard, then says so, and the readers leave. A thread of
 * liblcm reads the socket and wakes us through a pipe, so even spinning makes system calls.
 *
 * With a loopback address ttl is 0: the kernel hands multicast round inside the host. With another address ttl is 1,
 * and the route to 239.0.0.0/8 decides the interface: liblcm cannot be configured with one. */
#include "../harness/noctule_peer.h"

#include <lcm/lcm.h>

#define GROUP "239.255.76.67"
#define RECEIVE_BUFFER_BYTES (4 << 20)
#define PROBE_NS INT64_C(5000000)
#define MAX_NODES 64

static struct {
    lcm_t *lcm;
    struct noctule_node *node;
    char channel[256];      /* to publish on */
    bool seen[MAX_NODES];   /* readers heard, by node number */
    uint64_t readers_seen;
    bool writer_complete;   /* our writer has heard all its readers */
    int delivered;
} lcm;

static const char *lcm_version(void) {
    static char version[32]; /* of the headers: liblcm offers none at run time */
    snprintf(version, sizeof version, "%d.%d.%d", LCM_MAJOR_VERSION, LCM_MINOR_VERSION, LCM_MICRO_VERSION);
    return version;
}

static void on_message(const lcm_recv_buf_t *received, const char *channel, void *user) {
    (void)channel, (void)user;
    noctule_deliver(lcm.node, received->data, received->data_size);
    lcm.delivered++;
}

/* Our writer probes: answer with our number, unless it has announced that all are heard. */
static void on_probe(const lcm_recv_buf_t *received, const char *channel, void *user) {
    char answer[300];
    uint32_t number = (uint32_t)lcm.node->node;
    (void)user;
    if (received->data_size == 1 && *(const char *)received->data == 'C') lcm.writer_complete = true;
    snprintf(answer, sizeof answer, "%.*s.seen", (int)(strlen(channel) - strlen(".probe")), channel);
    if (!lcm.writer_complete) lcm_publish(lcm.lcm, answer, &number, sizeof number);
}

static void on_seen(const lcm_recv_buf_t *received, const char *channel, void *user) {
    uint32_t number = MAX_NODES;
    (void)channel, (void)user;
    if (received->data_size == sizeof number) memcpy(&number, received->data, sizeof number);
    if (number >= MAX_NODES || lcm.seen[number]) return;
    lcm.seen[number] = true;
    lcm.readers_seen++;
}

static lcm_subscription_t *subscribe(const char *topic, const char *suffix, lcm_msg_handler_t handler) {
    char channel[256];
    snprintf(channel, sizeof channel, "%s/%s%s", lcm.node->session, topic, suffix);
    return lcm_subscribe(lcm.lcm, channel, handler, NULL);
}

static int peer_open(struct noctule_node *node) {
    bool loopback = strncmp(node->bind_address, "127.", 4) == 0;
    uint32_t hash = 2166136261u;
    char provider[128];
    for (const char *c = node->session; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
    if (node->nodes > MAX_NODES) return noctule_fail(node, "more than %d nodes: use fewer", MAX_NODES);
    snprintf(provider, sizeof provider, "udpm://" GROUP ":%u?ttl=%d&recv_buf_size=%d", 20000 + hash % 10000,
             loopback ? 0 : 1, RECEIVE_BUFFER_BYTES);
    lcm.node = node;
    lcm.lcm = lcm_create(provider);
    if (!lcm.lcm) return noctule_fail(node, "lcm_create(%s) failed: is there a route to " GROUP "?", provider);
    if (node->publish) {
        snprintf(lcm.channel, sizeof lcm.channel, "%s/%s", node->session, node->publish);
        if (!subscribe(node->publish, ".seen", on_seen)) return noctule_fail(node, "lcm_subscribe failed");
    }
    if (node->subscribe) {
        int depth = node->window > 30 ? (int)node->window : 30; /* 30 is LCM's own default */
        lcm_subscription_t *subscription = subscribe(node->subscribe, "", on_message);
        if (!subscription || !subscribe(node->subscribe, ".probe", on_probe))
            return noctule_fail(node, "lcm_subscribe failed: is there a route to " GROUP "?");
        lcm_subscription_set_queue_capacity(subscription, depth);
        noctule_setting(node, "queue_messages", "%d", depth);
    }
    noctule_setting(node, "provider", "%s", provider);
    return 0;
}

static int peer_connect(struct noctule_node *node) {
    char channel[300];
    int64_t end_ns = noctule_now_ns() + NOCTULE_MATCH_TIMEOUT_NS, next_ns = 0;
    snprintf(channel, sizeof channel, "%s.probe", lcm.channel);
    while (lcm.readers_seen < node->readers || (node->subscribe && !lcm.writer_complete)) {
        int64_t now = noctule_now_ns();
        if (now > end_ns)
            return noctule_fail(node, "%d of %d readers answered in 10 s, and the writer %s", (int)lcm.readers_seen,
                                (int)node->readers, lcm.writer_complete ? "did" : "did not");
        if (now >= next_ns) {
            bool complete = lcm.readers_seen >= node->readers; /* partners may wait for us while we wait for others */
            if (node->publish) lcm_publish(lcm.lcm, channel, complete ? "C" : "P", 1);
            next_ns = now + PROBE_NS;
        }
        if (lcm_handle_timeout(lcm.lcm, 1) < 0) return noctule_fail(node, "lcm_handle_timeout failed");
    }
    for (int i = 0; node->publish && i < 3; i++) lcm_publish(lcm.lcm, channel, "C", 1); /* UDP may lose one */
    return 0;
}

static int peer_send(struct noctule_node *node, const void *message, size_t length) {
    if (lcm_publish(lcm.lcm, lcm.channel, message, (unsigned)length) == 0) return 0;
    return noctule_fail(node, "lcm_publish failed: %s", strerror(errno));
}

static int handle(struct noctule_node *node, int timeout_ms) {
    lcm.delivered = 0;
    if (lcm_handle_timeout(lcm.lcm, timeout_ms) < 0) return noctule_fail(node, "lcm_handle_timeout failed");
    return lcm.delivered;
}

static int peer_try_receive(struct noctule_node *node) { return handle(node, 0); }

static int peer_receive_blocking(struct noctule_node *node, int64_t timeout_ns) {
    if (timeout_ns == NP_IDLE_NS) return handle(node, (int)(NP_IDLE_NS / 1000000));
    struct timespec timeout = { timeout_ns / 1000000000, timeout_ns % 1000000000 };
    struct pollfd ready = { lcm_get_fileno(lcm.lcm), POLLIN, 0 }; /* liblcm's own time-outs are whole milliseconds */
    return ppoll(&ready, 1, &timeout, NULL) > 0 ? handle(node, 0) : 0;
}

static void peer_close(struct noctule_node *node) {
    (void)node;
    if (lcm.lcm) lcm_destroy(lcm.lcm);
}

int main(int argc, char **argv) {
    static const struct noctule_peer peer = {
        .name = "lcm", .links = "udp", .waits = "spin,block,hybrid", .modes = "round_trip,one_way,chain,fan_out",
        .max_payload_bytes = 8 << 20, .receives_in_thread = true, .version = lcm_version, .open = peer_open,
        .connect = peer_connect, .send = peer_send, .try_receive = peer_try_receive,
        .receive_blocking = peer_receive_blocking, .close = peer_close,
    };
    return noctule_peer_main(argc, argv, &peer);
}
