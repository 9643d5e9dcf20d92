/* ENet under test: one host per node, one connection with one channel per reader, called by the writer.
 *
 * ENet has no thread: the thread that owns a host must serve it. Nodes that receive do so while they wait. Where no call waits, at
 * a source and after the last message of a run, a thread serves the host (acknowledgements, retransmissions) when
 * something arrives and every millisecond, as a game's network thread would.
 *
 * `reliable` is ENet's reliable sequenced packet: retransmitted until acknowledged, delivered in order; there is no
 * deadline. `best_effort` is an unreliable sequenced packet, fragments too: what arrives late or out of order is dropped.
 * ENet's throttle, which drops unreliable packets by chance when the round trip varies, is turned off: a robot's topic
 * has a rate, and its user would. ENet queues without limit; this peer waits when `window` messages are on their way.
 *
 * Option: reliability=reliable|best_effort. */
#include "../harness/noctule_peer.h"

#include <arpa/inet.h>
#include <enet/enet.h>
#include <poll.h>
#include <pthread.h>

#define MAX_READERS 64
#define SOCKET_BUFFER_BYTES (4 << 20)
#define SERVE_EVERY_NS INT64_C(1000000)
#define UNSERVED_NS (2 * NP_IDLE_NS) /* so long nothing serves a host whose node waits for messages */
#define CHANNEL 0

static struct {
    ENetHost *host;
    ENetPeer *reader[MAX_READERS];
    size_t readers, connected;
    bool has_writer;
    enet_uint32 flags;
    uint64_t on_the_way; /* packets ENet still holds */
    pthread_t server;
    bool serves, ends;
    int64_t served_ns;
    pthread_mutex_t lock; /* of the host */
} enet = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const char *enet_version(void) {
    static char text[32];
    ENetVersion version = enet_linked_version();
    snprintf(text, sizeof text, "%u.%u.%u", ENET_VERSION_GET_MAJOR(version), ENET_VERSION_GET_MINOR(version),
             ENET_VERSION_GET_PATCH(version));
    return text;
}

static int peer_open(struct noctule_node *node) {
    const char *reliability = noctule_option(node, "reliability", "reliable");
    ENetAddress own = { 0, 0 };
    bool reliable = strcmp(reliability, "reliable") == 0;
    if (!reliable && strcmp(reliability, "best_effort") != 0)
        return noctule_fail(node, "option.reliability=%.40s is neither reliable nor best_effort", reliability);
    enet.flags = reliable ? ENET_PACKET_FLAG_RELIABLE : ENET_PACKET_FLAG_UNRELIABLE_FRAGMENT;
    if (enet_initialize() != 0) return noctule_fail(node, "ENet does not start");
    if (enet_address_set_host_ip(&own, node->bind_address) != 0)
        return noctule_fail(node, "bind_address=%s is not an IPv4 address", node->bind_address);
    enet.host = enet_host_create(&own, MAX_READERS + 1, 1, 0, 0);
    if (!enet.host || enet_socket_get_address(enet.host->socket, &own) != 0)
        return noctule_fail(node, "no UDP socket on %s: %s", node->bind_address, strerror(errno));
    enet_socket_set_option(enet.host->socket, ENET_SOCKOPT_RCVBUF, SOCKET_BUFFER_BYTES);
    enet_socket_set_option(enet.host->socket, ENET_SOCKOPT_SNDBUF, SOCKET_BUFFER_BYTES);
    if (node->subscribe) snprintf(node->address, sizeof node->address, "%s:%d", node->bind_address, own.port);
    noctule_setting(node, "reliability", "%s", reliability);
    noctule_setting(node, "throttle", "off");
    noctule_setting(node, "queue_messages", "%d", (int)node->window);
    return 0;
}

static bool is_reader(const ENetPeer *peer) {
    for (size_t i = 0; i < enet.readers; i++)
        if (enet.reader[i] == peer) return true;
    return false;
}

/* Handles one event; gives how many messages were delivered. */
static int handle(struct noctule_node *node, ENetEvent *event) {
    switch (event->type) {
    case ENET_EVENT_TYPE_CONNECT:
        if (is_reader(event->peer)) enet.connected++;
        else enet.has_writer = true;
        /* Not before: the answer to a call must agree with what the call said. */
        enet_peer_throttle_configure(event->peer, ENET_PEER_PACKET_THROTTLE_INTERVAL, ENET_PEER_PACKET_THROTTLE_SCALE, 0);
        return 0;
    case ENET_EVENT_TYPE_RECEIVE:
        noctule_deliver(node, event->packet->data, event->packet->dataLength);
        enet_packet_destroy(event->packet);
        return 1;
    default: return 0; /* a partner has gone: what it does not get is lost, and counted */
    }
}

/* Sends what waits, takes what has come; never waits. The lock is held. */
static int serve(struct noctule_node *node) {
    ENetEvent event;
    int delivered = 0, got;
    __atomic_store_n(&enet.served_ns, noctule_now_ns(), __ATOMIC_RELAXED);
    while ((got = enet_host_service(enet.host, &event, 0)) > 0) delivered += handle(node, &event);
    return got < 0 ? noctule_fail(node, "enet_host_service: %s", strerror(errno)) : delivered;
}

static int peer_try_receive(struct noctule_node *node) {
    pthread_mutex_lock(&enet.lock);
    int delivered = serve(node);
    pthread_mutex_unlock(&enet.lock);
    return delivered;
}

static void sleep_until_readable(int64_t timeout_ns) {
    struct timespec timeout = { timeout_ns / 1000000000, timeout_ns % 1000000000 };
    struct pollfd ready = { enet.host->socket, POLLIN, 0 }; /* ENet's own time-outs are whole milliseconds */
    ppoll(&ready, 1, &timeout, NULL);
}

/* Without an event to fill, ENet keeps what arrives for the node's own thread. */
static void *serve_in_its_stead(void *state) {
    const struct noctule_node *node = state;
    struct timespec pause = { 0, SERVE_EVERY_NS };
    while (!__atomic_load_n(&enet.ends, __ATOMIC_RELAXED)) {
        int64_t unserved_ns = noctule_now_ns() - __atomic_load_n(&enet.served_ns, __ATOMIC_RELAXED);
        if (node->role == NOCTULE_SOURCE) sleep_until_readable(SERVE_EVERY_NS);
        else nanosleep(&pause, NULL);
        if (node->role != NOCTULE_SOURCE && unserved_ns < UNSERVED_NS) continue;
        pthread_mutex_lock(&enet.lock);
        enet_host_service(enet.host, NULL, 0);
        pthread_mutex_unlock(&enet.lock);
    }
    return NULL;
}

static int call(struct noctule_node *node, char *address) {
    char *port = strrchr(address, ':');
    ENetAddress reader = { 0, 0 };
    if (enet.readers == MAX_READERS) return noctule_fail(node, "more than %d readers: use fewer", MAX_READERS);
    if (port) *port++ = 0;
    if (!port || enet_address_set_host_ip(&reader, address) != 0)
        return noctule_fail(node, "the reader address %s is not HOST:PORT", address);
    reader.port = (enet_uint16)atoi(port);
    ENetPeer *peer = enet_host_connect(enet.host, &reader, 1, 0);
    if (!peer) return noctule_fail(node, "ENet has no room for another reader");
    enet.reader[enet.readers++] = peer;
    return 0;
}

static int peer_connect(struct noctule_node *node) {
    char list[4096], *rest = NULL;
    int64_t end_ns = noctule_now_ns() + NOCTULE_MATCH_TIMEOUT_NS;
    snprintf(list, sizeof list, "%s", node->reader_addresses);
    for (char *entry = strtok_r(list, ",", &rest); entry; entry = strtok_r(NULL, ",", &rest))
        if (call(node, entry) != 0) return -1;
    if (enet.readers != node->readers)
        return noctule_fail(node, "%zu reader addresses were given for %d readers", enet.readers, (int)node->readers);
    while (enet.connected < enet.readers || (node->subscribe && !enet.has_writer)) {
        if (peer_try_receive(node) < 0) return -1;
        if (noctule_now_ns() > end_ns)
            return noctule_fail(node, "%zu of %zu readers and %d writers were found in 10 s", enet.connected,
                                enet.readers, enet.has_writer);
        sleep_until_readable(SERVE_EVERY_NS);
    }
    if (!node->publish) return 0;
    enet.serves = pthread_create(&enet.server, NULL, serve_in_its_stead, node) == 0;
    return enet.serves ? 0 : noctule_fail(node, "no thread to serve the host");
}

static void ENET_CALLBACK has_gone(ENetPacket *packet) {
    (void)packet;
    enet.on_the_way--;
}

/* Waits until ENet has room in the window; the lock is held before and after. */
static int wait_for_room(struct noctule_node *node) {
    while (enet.on_the_way >= node->window * enet.readers) {
        pthread_mutex_unlock(&enet.lock);
        sleep_until_readable(SERVE_EVERY_NS);
        pthread_mutex_lock(&enet.lock);
        if (enet_host_service(enet.host, NULL, 0) < 0)
            return noctule_fail(node, "enet_host_service: %s", strerror(errno));
    }
    return 0;
}

static int send_to(struct noctule_node *node, ENetPeer *reader, const void *message, size_t length) {
    ENetPacket *packet = enet_packet_create(message, length, enet.flags);
    if (!packet) return noctule_fail(node, "there is no memory for a packet");
    packet->freeCallback = has_gone;
    enet.on_the_way++;
    if (enet_peer_send(reader, CHANNEL, packet) == 0) return 0;
    enet_packet_destroy(packet);
    return noctule_fail(node, "enet_peer_send: the connection is gone, or the message is too large for ENet");
}

static int enqueue(struct noctule_node *node, const void *message, size_t length) {
    int result = wait_for_room(node);
    for (size_t i = 0; i < enet.readers && result == 0; i++) result = send_to(node, enet.reader[i], message, length);
    enet_host_flush(enet.host);
    return result;
}

/* An echo and a forwarder send while a message is being delivered: then the lock is theirs already. */
static int peer_send(struct noctule_node *node, const void *message, size_t length) {
    if (node->role == NOCTULE_ECHO || node->role == NOCTULE_FORWARDER) return enqueue(node, message, length);
    pthread_mutex_lock(&enet.lock);
    int result = enqueue(node, message, length);
    pthread_mutex_unlock(&enet.lock);
    return result;
}

static int peer_receive_blocking(struct noctule_node *node, int64_t timeout_ns) {
    int delivered = peer_try_receive(node);
    if (delivered != 0) return delivered;
    sleep_until_readable(timeout_ns);
    return peer_try_receive(node);
}

static void peer_close(struct noctule_node *node) {
    (void)node;
    __atomic_store_n(&enet.ends, true, __ATOMIC_RELAXED);
    if (enet.serves) pthread_join(enet.server, NULL);
    if (enet.host) enet_host_destroy(enet.host);
    enet_deinitialize();
}

int main(int argc, char **argv) {
    static const struct noctule_peer peer = {
        .name = "enet", .links = "udp", .waits = "spin,block,hybrid", .modes = "round_trip,one_way,chain,fan_out",
        .max_payload_bytes = 16 << 20, .version = enet_version, .open = peer_open, .connect = peer_connect,
        .send = peer_send, .try_receive = peer_try_receive, .receive_blocking = peer_receive_blocking, .close = peer_close,
    };
    return noctule_peer_main(argc, argv, &peer);
}
