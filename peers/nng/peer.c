/* nng under test, the successor of nanomsg: publish and subscribe (pub0, sub0), without a broker.
 *
 * Readers listen, the writer dials each; pub0 has found its readers when it has as many pipes. What a reader subscribes to
 * is filtered at the reader, so nothing else has to be waited for. TCP_NODELAY is nng's default and set all the same.
 * Threads of the library read and write the sockets.
 *
 * pub0 never waits: what a pipe's queue does not take is dropped. Both queues hold the window, at most nng's 8,192; a
 * full queue of a reader drops the oldest (`sub:prefnew`, nng's default). */
#include "../harness/noctule_peer.h"

#include <nng/nng.h>
#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/pubsub0/sub.h>

#define DEPTH_MIN 128 /* nng's own default at a reader */
#define DEPTH_MAX 8192
#define LOOK_MS 1

static struct {
    nng_socket out, in;
    bool out_open, in_open, in_times_out;
    int in_fd;          /* -1: not asked for; nng then writes to it with every message */
    uint64_t pipes;     /* readers connected */
} nng = { .in_fd = -1 };

static int failed(struct noctule_node *node, const char *call, int error) {
    return noctule_fail(node, "%s: %s", call, nng_strerror(error));
}

/* By a thread of nng. */
static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *user) {
    (void)pipe, (void)event, (void)user;
    __atomic_add_fetch(&nng.pipes, 1, __ATOMIC_RELEASE);
}

static int open_reader(struct noctule_node *node, int depth) {
    nng_listener listener;
    char url[256];
    int error, port = 0;
    bool tcp = strcmp(node->link, "tcp") == 0;
    if (tcp) snprintf(url, sizeof url, "tcp://%s:0", node->bind_address);
    else /* no file is left */
        snprintf(url, sizeof url, "abstract://noctule-%s-%s-%d", node->session, node->subscribe, (int)node->node);
    if ((error = nng_sub0_open(&nng.in)) != 0) return failed(node, "nng_sub0_open", error);
    nng.in_open = true;
    if ((error = nng_socket_set(nng.in, NNG_OPT_SUB_SUBSCRIBE, "", 0)) != 0 ||
        (error = nng_socket_set_int(nng.in, NNG_OPT_RECVBUF, depth)) != 0 ||
        (error = nng_socket_set_size(nng.in, NNG_OPT_RECVMAXSZ, 0)) != 0) /* 0: any */
        return failed(node, "nng_socket_set", error);
    if ((error = nng_listener_create(&listener, nng.in, url)) != 0 ||
        (tcp && (error = nng_listener_set_bool(listener, NNG_OPT_TCP_NODELAY, true)) != 0) ||
        (error = nng_listener_start(listener, 0)) != 0 ||
        (tcp && (error = nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port)) != 0))
        return failed(node, url, error);
    if (tcp) snprintf(node->address, sizeof node->address, "tcp://%s:%d", node->bind_address, port);
    else snprintf(node->address, sizeof node->address, "%s", url);
    return 0;
}

static int peer_open(struct noctule_node *node) {
    int error, depth = node->window > DEPTH_MAX ? DEPTH_MAX : (int)node->window;
    if (depth < DEPTH_MIN) depth = DEPTH_MIN;
    if (node->publish) {
        if ((error = nng_pub0_open(&nng.out)) != 0) return failed(node, "nng_pub0_open", error);
        nng.out_open = true;
        if ((error = nng_socket_set_int(nng.out, NNG_OPT_SENDBUF, depth)) != 0 ||
            (error = nng_pipe_notify(nng.out, NNG_PIPE_EV_ADD_POST, on_pipe, NULL)) != 0)
            return failed(node, "nng_socket_set", error);
    }
    noctule_setting(node, "queue_messages", "%d", depth);
    noctule_setting(node, "full_reader_queue", "drops the oldest");
    noctule_setting(node, "tcp_nodelay", "1");
    return node->subscribe ? open_reader(node, depth) : 0;
}

static int dial(struct noctule_node *node, const char *url) {
    nng_dialer dialer;
    bool tcp = strncmp(url, "tcp:", 4) == 0;
    int error = nng_dialer_create(&dialer, nng.out, url);
    if (error == 0 && tcp) error = nng_dialer_set_bool(dialer, NNG_OPT_TCP_NODELAY, true);
    if (error == 0) error = nng_dialer_start(dialer, 0);
    return error == 0 ? 0 : failed(node, url, error);
}

static int peer_connect(struct noctule_node *node) {
    char list[4096], *rest = NULL;
    struct timespec pause = { 0, LOOK_MS * 1000000 };
    int64_t end_ns = noctule_now_ns() + NOCTULE_MATCH_TIMEOUT_NS;
    snprintf(list, sizeof list, "%s", node->reader_addresses);
    for (char *reader = strtok_r(list, ",", &rest); reader; reader = strtok_r(NULL, ",", &rest))
        if (dial(node, reader) != 0) return -1;
    while (__atomic_load_n(&nng.pipes, __ATOMIC_ACQUIRE) < node->readers) {
        if (noctule_now_ns() > end_ns)
            return noctule_fail(node, "%d of %d readers were connected in 10 s", (int)nng.pipes, (int)node->readers);
        nanosleep(&pause, NULL);
    }
    return 0;
}

static int peer_send_in_place(struct noctule_node *node, size_t length) {
    nng_msg *message;
    int error = nng_msg_alloc(&message, length);
    if (error != 0) return failed(node, "nng_msg_alloc", error);
    noctule_fill(node, nng_msg_body(message));
    error = nng_sendmsg(nng.out, message, 0);
    if (error == 0) return 0;
    nng_msg_free(message);
    return failed(node, "nng_sendmsg", error);
}

static int receive(struct noctule_node *node, int flags) {
    nng_msg *message;
    int error = nng_recvmsg(nng.in, &message, flags);
    if (error == NNG_EAGAIN || error == NNG_ETIMEDOUT) return 0;
    if (error != 0) return failed(node, "nng_recvmsg", error);
    noctule_deliver(node, nng_msg_body(message), nng_msg_len(message));
    nng_msg_free(message);
    return 1;
}

static int peer_try_receive(struct noctule_node *node) { return receive(node, NNG_FLAG_NONBLOCK); }

static int peer_receive_blocking(struct noctule_node *node, int64_t timeout_ns) {
    if (timeout_ns == NP_IDLE_NS) {
        if (!nng.in_times_out) nng_socket_set_ms(nng.in, NNG_OPT_RECVTIMEO, (nng_duration)(NP_IDLE_NS / 1000000));
        nng.in_times_out = true;
        return receive(node, 0);
    }
    /* nng's time-outs are whole milliseconds. */
    if (nng.in_fd < 0 && nng_socket_get_int(nng.in, NNG_OPT_RECVFD, &nng.in_fd) != 0)
        return noctule_fail(node, "nng offers no descriptor to wait for");
    struct timespec timeout = { timeout_ns / 1000000000, timeout_ns % 1000000000 };
    struct pollfd ready = { nng.in_fd, POLLIN, 0 };
    return ppoll(&ready, 1, &timeout, NULL) > 0 ? receive(node, NNG_FLAG_NONBLOCK) : 0;
}

static void peer_close(struct noctule_node *node) {
    (void)node;
    if (nng.out_open) nng_close(nng.out);
    if (nng.in_open) nng_close(nng.in);
    nng_fini();
}

int main(int argc, char **argv) {
    static const struct noctule_peer peer = {
        .name = "nng", .links = "tcp,unix", .waits = "spin,block,hybrid", .modes = "round_trip,one_way,chain,fan_out",
        .max_payload_bytes = 16 << 20, .receives_in_thread = true, .version = nng_version, .open = peer_open,
        .connect = peer_connect, .send_in_place = peer_send_in_place, .try_receive = peer_try_receive,
        .receive_blocking = peer_receive_blocking, .close = peer_close,
    };
    return noctule_peer_main(argc, argv, &peer);
}
