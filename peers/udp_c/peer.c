/* Raw UDP through the C harness: one socket to receive, a connected one per reader, no middleware.
 *
 * It is the shortest complete user of noctule_peer.h, and it checks the two harnesses against each other:
 * beside the lab's own UDP floor it must show the same latency. */
#include "../harness/noctule_peer.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#define MAX_READERS 64
#define RECEIVE_BUFFER_BYTES (4 << 20)

static struct {
    int socket;
    int64_t timeout_ns; /* what the socket's receive time-out is set to */
    size_t readers;
    int reader[MAX_READERS]; /* connected: the route is looked up once, not with every message */
    unsigned char datagram[65536];
} udp;

static const char *udp_version(void) { return "C"; }

static int udp_open(struct noctule_node *node) {
    struct sockaddr_in own = { .sin_family = AF_INET };
    socklen_t size = sizeof own;
    int bytes = RECEIVE_BUFFER_BYTES;
    udp.socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (inet_pton(AF_INET, node->bind_address, &own.sin_addr) != 1)
        return noctule_fail(node, "bind_address=%s is not an IPv4 address", node->bind_address);
    if (udp.socket < 0 || bind(udp.socket, (struct sockaddr *)&own, sizeof own) != 0 ||
        getsockname(udp.socket, (struct sockaddr *)&own, &size) != 0)
        return noctule_fail(node, "no UDP socket on %s: %s", node->bind_address, strerror(errno));
    setsockopt(udp.socket, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    size = sizeof bytes;
    getsockopt(udp.socket, SOL_SOCKET, SO_RCVBUF, &bytes, &size);
    noctule_setting(node, "receive_buffer_bytes", "%d", bytes);
    if (node->subscribe)
        snprintf(node->address, sizeof node->address, "%s:%d", node->bind_address, ntohs(own.sin_port));
    return 0;
}

static int udp_connect(struct noctule_node *node) {
    char list[4096], *rest = NULL;
    snprintf(list, sizeof list, "%s", node->reader_addresses);
    for (char *entry = strtok_r(list, ",", &rest); entry; entry = strtok_r(NULL, ",", &rest)) {
        char *port = strrchr(entry, ':');
        struct sockaddr_in reader = { .sin_family = AF_INET };
        if (udp.readers == MAX_READERS) return noctule_fail(node, "more than %d readers: use fewer", MAX_READERS);
        if (port) *port++ = 0;
        if (!port || inet_pton(AF_INET, entry, &reader.sin_addr) != 1)
            return noctule_fail(node, "the reader address %s is not HOST:PORT", entry);
        reader.sin_port = htons((uint16_t)atoi(port));
        int own = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (own < 0 || connect(own, (struct sockaddr *)&reader, sizeof reader) != 0)
            return noctule_fail(node, "no connection to %s: %s", entry, strerror(errno));
        udp.reader[udp.readers++] = own;
    }
    if (udp.readers != node->readers)
        return noctule_fail(node, "%zu reader addresses were given for %d readers", udp.readers, (int)node->readers);
    return 0;
}

static int udp_send(struct noctule_node *node, const void *message, size_t length) {
    for (size_t i = 0; i < udp.readers; i++)
        if (send(udp.reader[i], message, length, 0) < 0 && errno != ECONNREFUSED)
            return noctule_fail(node, "send failed: %s", strerror(errno));
    return 0;
}

static int udp_receive(struct noctule_node *node, int flags) {
    ssize_t got = recv(udp.socket, udp.datagram, sizeof udp.datagram, flags);
    if (got >= 0) {
        noctule_deliver(node, udp.datagram, (size_t)got);
        return 1;
    }
    if (errno == EAGAIN || errno == EINTR) return 0;
    return noctule_fail(node, "recv failed: %s", strerror(errno));
}

static int udp_try_receive(struct noctule_node *node) { return udp_receive(node, MSG_DONTWAIT); }

static int udp_receive_blocking(struct noctule_node *node, int64_t timeout_ns) {
    if (timeout_ns != NP_IDLE_NS) { /* before a scheduled send: to the nanosecond, two calls */
        struct timespec timeout = { timeout_ns / 1000000000, timeout_ns % 1000000000 };
        struct pollfd ready = { udp.socket, POLLIN, 0 };
        return ppoll(&ready, 1, &timeout, NULL) > 0 ? udp_receive(node, MSG_DONTWAIT) : 0;
    }
    if (udp.timeout_ns != timeout_ns) {
        struct timeval timeout = { 0, timeout_ns / 1000 };
        setsockopt(udp.socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
        udp.timeout_ns = timeout_ns;
    }
    return udp_receive(node, 0);
}

static void udp_close(struct noctule_node *node) {
    (void)node;
    if (udp.socket > 0) close(udp.socket);
}

int main(int argc, char **argv) {
    static const struct noctule_peer peer = {
        .name = "udp_c", .links = "udp", .waits = "spin,block,hybrid", .modes = "round_trip,one_way,chain,fan_out",
        .max_payload_bytes = 65507, .version = udp_version, .open = udp_open, .connect = udp_connect,
        .send = udp_send, .try_receive = udp_try_receive, .receive_blocking = udp_receive_blocking,
        .close = udp_close,
    };
    return noctule_peer_main(argc, argv, &peer);
}
