/* ZeroMQ under test: PUB and SUB sockets through libzmq, without a broker.
 *
 * Readers bind, the writer connects to each. The writer's socket is an XPUB, which is a PUB that also hands out the
 * subscriptions it hears: all readers have found it when as many have subscribed as it has readers. libzmq sets
 * TCP_NODELAY on every TCP connection by itself. A thread of it reads and writes the sockets, so each message wakes
 * that thread first, also where the node spins.
 *
 * A PUB drops what a reader's queue (SNDHWM at the writer, RCVHWM at the reader, the window but at least libzmq's
 * default of 1,000) does not take. `history=keep_all` sets XPUB_NODROP: the writer waits instead.
 *
 * Options: history=keep_last|keep_all. */
#include "../harness/noctule_peer.h"

#include <zmq.h>

#define DEFAULT_DEPTH 1000
#define LOOK_MS 20

static struct {
    void *context, *out, *in;
    int in_fd;
    int in_timeout_ms; /* what the socket's time-out is set to */
} zmq;

static const char *zmq_version_text(void) {
    static char text[32];
    int major, minor, patch;
    zmq_version(&major, &minor, &patch);
    snprintf(text, sizeof text, "%d.%d.%d", major, minor, patch);
    return text;
}

static int failed(struct noctule_node *node, const char *call) {
    return noctule_fail(node, "%s: %s", call, zmq_strerror(zmq_errno()));
}

static void *new_socket(int type, int depth_option, int depth) {
    int none = 0;
    void *socket = zmq_socket(zmq.context, type);
    if (!socket) return NULL;
    zmq_setsockopt(socket, depth_option, &depth, sizeof depth);
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none); /* a partner that has gone does not hold close up */
    return socket;
}

static int open_reader(struct noctule_node *node, int depth) {
    char endpoint[256];
    size_t size = sizeof node->address;
    if (strcmp(node->link, "unix") == 0) /* the abstract namespace: no file is left */
        snprintf(endpoint, sizeof endpoint, "ipc://@noctule-%s-%s-%d", node->session, node->subscribe, (int)node->node);
    else snprintf(endpoint, sizeof endpoint, "tcp://%s:*", node->bind_address);
    zmq.in = new_socket(ZMQ_SUB, ZMQ_RCVHWM, depth);
    if (!zmq.in || zmq_setsockopt(zmq.in, ZMQ_SUBSCRIBE, "", 0) != 0) return failed(node, "zmq_setsockopt(SUBSCRIBE)");
    if (zmq_bind(zmq.in, endpoint) != 0 || zmq_getsockopt(zmq.in, ZMQ_LAST_ENDPOINT, node->address, &size) != 0)
        return noctule_fail(node, "no socket at %s: %s", endpoint, zmq_strerror(zmq_errno()));
    size = sizeof zmq.in_fd;
    return zmq_getsockopt(zmq.in, ZMQ_FD, &zmq.in_fd, &size) == 0 ? 0 : failed(node, "zmq_getsockopt(FD)");
}

static int peer_open(struct noctule_node *node) {
    const char *history = noctule_option(node, "history", "keep_last");
    int keep_all = strcmp(history, "keep_all") == 0, yes = 1;
    int depth = node->window > DEFAULT_DEPTH ? (int)node->window : DEFAULT_DEPTH;
    if (!keep_all && strcmp(history, "keep_last") != 0)
        return noctule_fail(node, "option.history=%.40s is neither keep_last nor keep_all", history);
    zmq.context = zmq_ctx_new();
    if (node->publish) {
        zmq.out = new_socket(ZMQ_XPUB, ZMQ_SNDHWM, depth);
        if (!zmq.out || zmq_setsockopt(zmq.out, ZMQ_XPUB_VERBOSE, &yes, sizeof yes) != 0 ||
            zmq_setsockopt(zmq.out, ZMQ_XPUB_NODROP, &keep_all, sizeof keep_all) != 0)
            return failed(node, "zmq_setsockopt");
    }
    noctule_setting(node, "history", "%s", history);
    noctule_setting(node, "high_water_mark_messages", "%d", depth);
    noctule_setting(node, "tcp_nodelay", "1");
    return node->subscribe ? open_reader(node, depth) : 0;
}

/* Connects to every reader. When all have subscribed, an empty message tells them so: a SUB socket subscribes only
 * while its own thread calls libzmq, and both ends of a round trip wait for each other. */
static int peer_connect(struct noctule_node *node) {
    char list[4096], *rest = NULL;
    unsigned char word[8];
    uint64_t subscribed = 0;
    bool complete = !node->publish, greeted = !node->subscribe;
    int64_t end_ns = noctule_now_ns() + NOCTULE_MATCH_TIMEOUT_NS;
    snprintf(list, sizeof list, "%s", node->reader_addresses);
    for (char *reader = strtok_r(list, ",", &rest); reader; reader = strtok_r(NULL, ",", &rest))
        if (zmq_connect(zmq.out, reader) != 0)
            return noctule_fail(node, "no connection to %s: %s", reader, zmq_strerror(zmq_errno()));
    while (!complete || !greeted) {
        zmq_pollitem_t both[2] = { { zmq.in, 0, ZMQ_POLLIN, 0 }, { zmq.out, 0, ZMQ_POLLIN, 0 } };
        if (noctule_now_ns() > end_ns)
            return noctule_fail(node, "%d of %d readers subscribed in 10 s, and the writer %s", (int)subscribed,
                                (int)node->readers, greeted ? "was heard" : "was not heard");
        zmq_poll(zmq.in ? both : both + 1, zmq.in && zmq.out ? 2 : 1, LOOK_MS);
        if (!greeted && zmq_recv(zmq.in, word, sizeof word, ZMQ_DONTWAIT) == 0) greeted = true;
        if (!complete && zmq_recv(zmq.out, word, sizeof word, ZMQ_DONTWAIT) > 0 && word[0] == 1) subscribed++;
        if (!complete && subscribed == node->readers) complete = zmq_send(zmq.out, "", 0, 0) == 0;
    }
    return 0;
}

static int peer_send_in_place(struct noctule_node *node, size_t length) {
    zmq_msg_t message;
    if (zmq_msg_init_size(&message, length) != 0) return failed(node, "zmq_msg_init_size");
    noctule_fill(node, zmq_msg_data(&message));
    while (zmq_msg_send(&message, zmq.out, 0) < 0)
        if (zmq_errno() != EINTR) return failed(node, "zmq_msg_send");
    return 0;
}

static int receive(struct noctule_node *node, int flags) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    if (zmq_msg_recv(&message, zmq.in, flags) < 0) {
        int error = zmq_errno();
        return error == EAGAIN || error == EINTR ? 0 : failed(node, "zmq_msg_recv");
    }
    noctule_deliver(node, zmq_msg_data(&message), zmq_msg_size(&message));
    zmq_msg_close(&message);
    return 1;
}

static int peer_try_receive(struct noctule_node *node) { return receive(node, ZMQ_DONTWAIT); }

static int peer_receive_blocking(struct noctule_node *node, int64_t timeout_ns) {
    if (timeout_ns == NP_IDLE_NS) {
        int timeout_ms = (int)(NP_IDLE_NS / 1000000);
        if (zmq.in_timeout_ms != timeout_ms) zmq_setsockopt(zmq.in, ZMQ_RCVTIMEO, &timeout_ms, sizeof timeout_ms);
        zmq.in_timeout_ms = timeout_ms;
        return receive(node, 0);
    }
    /* libzmq's time-outs are whole milliseconds. Its descriptor tells of changes only: look first. */
    struct timespec timeout = { timeout_ns / 1000000000, timeout_ns % 1000000000 };
    struct pollfd ready = { zmq.in_fd, POLLIN, 0 };
    int got = receive(node, ZMQ_DONTWAIT);
    if (got == 0 && ppoll(&ready, 1, &timeout, NULL) > 0) got = receive(node, ZMQ_DONTWAIT);
    return got;
}

static void peer_close(struct noctule_node *node) {
    (void)node;
    if (zmq.out) zmq_close(zmq.out);
    if (zmq.in) zmq_close(zmq.in);
    if (zmq.context) zmq_ctx_term(zmq.context);
}

int main(int argc, char **argv) {
    static const struct noctule_peer peer = {
        .name = "zeromq", .links = "tcp,unix", .waits = "spin,block,hybrid",
        .modes = "round_trip,one_way,chain,fan_out", .max_payload_bytes = 16 << 20, .receives_in_thread = true,
        .version = zmq_version_text, .open = peer_open, .connect = peer_connect,
        .send_in_place = peer_send_in_place, .try_receive = peer_try_receive,
        .receive_blocking = peer_receive_blocking, .close = peer_close,
    };
    return noctule_peer_main(argc, argv, &peer);
}
