/* MQTT 3.1.1 under test: libmosquitto at every node, and a mosquitto broker between them.
 *
 * The broker is a process of its own that node 1 starts on its bind_address, without files, on a port made from the
 * session; it runs on any core and ends with node 1. So each message crosses two TCP connections. Node 0 is handed the
 * broker's address; further nodes look for it on their own bind_address, so that a chain or a fan-out needs nodes that share
 * one. The broker's processor time is in none of the lab's figures.
 *
 * libmosquitto runs without a thread: a node's own loop reads the socket. TCP_NODELAY is set at both ends. What the socket
 * does not take is waited for after each publish, or libmosquitto would queue without limit. With QoS 1 up to the
 * window are on their way at once, at the client and at the broker; mosquitto's default of 20 would be the result. QoS 2
 * is not offered: its second exchange needs the writer after its last message, when a source's loop has ended.
 *
 * Options: qos=0|1. */
#include "../harness/noctule_peer.h"

#include <mosquitto.h>
#include <sys/wait.h>

#define PORT_FIRST 20000
#define PORTS 12000 /* below the ports that the kernel gives to clients */
#define IN_FLIGHT_MIN 20 /* mosquitto's own defaults */
#define IN_FLIGHT_MAX 65535
#define QUEUED_MIN 1000
#define LOOK_MS 5

static struct {
    struct mosquitto *client;
    struct noctule_node *node;
    pid_t broker;
    char topic[256];
    int qos, port;
    bool accepted, subscribed, in_callback;
    uint64_t window, sent, acknowledged; /* acknowledged: of QoS 1 */
    int delivered;
} mqtt;

static const char *mqtt_version(void) {
    static char text[32];
    int major, minor, patch;
    mosquitto_lib_version(&major, &minor, &patch);
    snprintf(text, sizeof text, "%d.%d.%d", major, minor, patch);
    return text;
}

static int failed(struct noctule_node *node, const char *call, int error) {
    return noctule_fail(node, "%s: %s", call, error == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(error));
}

/* Never returns: becomes the broker. Its configuration is a file without a name. */
static void become_broker(const struct noctule_node *node, pid_t parent) {
    char text[512], path[64];
    cpu_set_t all;
    int file = memfd_create("mosquitto.conf", 0);
    int length = snprintf(text, sizeof text,
                          "listener %d %s\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n"
                          "max_inflight_messages %d\nmax_queued_messages %d\nuser root\nlog_dest stderr\n"
                          "log_type error\n",
                          mqtt.port, node->bind_address, (int)mqtt.window,
                          mqtt.window > QUEUED_MIN ? (int)mqtt.window : QUEUED_MIN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || file < 0 || write(file, text, (size_t)length) != length) _exit(126);
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    execlp("mosquitto", "mosquitto", "-c", path, (char *)NULL);
    execl("/usr/sbin/mosquitto", "mosquitto", "-c", path, (char *)NULL); /* not in every user's PATH */
    _exit(127);
}

static void on_accepted(struct mosquitto *client, void *user, int code) {
    (void)client, (void)user;
    mqtt.accepted = code == 0;
}

static void on_subscribed(struct mosquitto *client, void *user, int id, int count, const int *granted) {
    (void)client, (void)user, (void)id;
    mqtt.subscribed = count == 1 && granted[0] == mqtt.qos;
}

/* QoS 0: written to the socket. QoS 1: acknowledged by the broker. */
static void on_published(struct mosquitto *client, void *user, int id) {
    (void)client, (void)user, (void)id;
    mqtt.acknowledged++;
}

static void on_message(struct mosquitto *client, void *user, const struct mosquitto_message *message) {
    (void)client, (void)user;
    mqtt.in_callback = true;
    noctule_deliver(mqtt.node, message->payload, (size_t)message->payloadlen);
    mqtt.in_callback = false;
    mqtt.delivered++;
}

static int peer_open(struct noctule_node *node) {
    const char *qos = noctule_option(node, "qos", "0");
    uint32_t hash = 2166136261u;
    for (const char *c = node->session; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
    if (strlen(qos) != 1 || *qos < '0' || *qos > '1') return noctule_fail(node, "option.qos=%.40s is neither 0 nor 1", qos);
    mqtt.node = node;
    mqtt.qos = *qos - '0';
    mqtt.port = PORT_FIRST + (int)(hash % PORTS);
    mqtt.window = node->window > IN_FLIGHT_MAX ? IN_FLIGHT_MAX : node->window;
    if (mqtt.window < IN_FLIGHT_MIN) mqtt.window = IN_FLIGHT_MIN;
    mosquitto_lib_init();
    mqtt.client = mosquitto_new(NULL, true, NULL);
    if (!mqtt.client) return noctule_fail(node, "mosquitto_new: %s", strerror(errno));
    mosquitto_int_option(mqtt.client, MOSQ_OPT_TCP_NODELAY, 1);
    mosquitto_int_option(mqtt.client, MOSQ_OPT_SEND_MAXIMUM, (int)mqtt.window);
    mosquitto_int_option(mqtt.client, MOSQ_OPT_RECEIVE_MAXIMUM, (int)mqtt.window);
    mosquitto_connect_callback_set(mqtt.client, on_accepted);
    mosquitto_subscribe_callback_set(mqtt.client, on_subscribed);
    mosquitto_publish_callback_set(mqtt.client, on_published);
    mosquitto_message_callback_set(mqtt.client, on_message);
    if (node->publish) snprintf(mqtt.topic, sizeof mqtt.topic, "%s/%s", node->session, node->publish);
    snprintf(node->address, sizeof node->address, "%s:%d", node->bind_address, mqtt.port);
    noctule_setting(node, "qos", "%d", mqtt.qos);
    noctule_setting(node, "protocol", "MQTT 3.1.1");
    noctule_setting(node, "broker", "mosquitto on any core");
    noctule_setting(node, "in_flight_messages", "%d", (int)mqtt.window);
    noctule_setting(node, "tcp_nodelay", "1");
    pid_t parent = getpid();
    if (node->node == 1 && (mqtt.broker = fork()) == 0) become_broker(node, parent);
    return mqtt.broker >= 0 ? 0 : noctule_fail(node, "no process for the broker: %s", strerror(errno));
}

/* Lets the client work for LOOK_MS; -1 if time is up or the broker has ended. */
static int work(struct noctule_node *node, int64_t end_ns, const char *awaited) {
    int status = 0, error = mosquitto_loop(mqtt.client, LOOK_MS, 1);
    if (mqtt.broker > 0 && waitpid(mqtt.broker, &status, WNOHANG) == mqtt.broker) {
        mqtt.broker = 0;
        return noctule_fail(node, "mosquitto ended with status %d: is it installed, is its port free?",
                            WIFEXITED(status) ? WEXITSTATUS(status) : status);
    }
    if (noctule_now_ns() > end_ns) return noctule_fail(node, "10 s without %s from the broker", awaited);
    return error == MOSQ_ERR_SUCCESS || !mqtt.accepted ? 0 : failed(node, "mosquitto_loop", error);
}

static int peer_connect(struct noctule_node *node) {
    char host[512], topic[256];
    struct timespec pause = { 0, LOOK_MS * 1000000 };
    int64_t end_ns = noctule_now_ns() + NOCTULE_MATCH_TIMEOUT_NS;
    snprintf(host, sizeof host, "%s", node->node == 0 ? node->reader_addresses : node->address);
    char *port = strchr(host, ':');
    if (!port) return noctule_fail(node, "the address %.60s of the broker is not HOST:PORT", host);
    *port++ = 0;
    /* Keep-alive 0: the lab ends a node that hangs. The broker may still be starting. */
    while (mosquitto_connect(mqtt.client, host, atoi(port), 0) != MOSQ_ERR_SUCCESS) {
        if (noctule_now_ns() > end_ns)
            return noctule_fail(node, "no broker at %s:%d for 10 s: nodes after the second need its address as theirs",
                                host, atoi(port));
        if (mqtt.broker > 0 && work(node, end_ns, "an answer") != 0) return -1;
        nanosleep(&pause, NULL);
    }
    while (!mqtt.accepted)
        if (work(node, end_ns, "CONNACK") != 0) return -1;
    if (!node->subscribe) return 0;
    snprintf(topic, sizeof topic, "%s/%s", node->session, node->subscribe);
    int error = mosquitto_subscribe(mqtt.client, NULL, topic, mqtt.qos);
    if (error != MOSQ_ERR_SUCCESS) return failed(node, "mosquitto_subscribe", error);
    while (!mqtt.subscribed)
        if (work(node, end_ns, "SUBACK") != 0) return -1;
    return 0;
}

static int await(short events, int64_t timeout_ns) {
    struct timespec timeout = { timeout_ns / 1000000000, timeout_ns % 1000000000 };
    struct pollfd wanted = { mosquitto_socket(mqtt.client), events, 0 };
    return ppoll(&wanted, 1, &timeout, NULL);
}

/* Writes what waits for the socket. Not from a callback, where libmosquitto only queues. */
static int flush(struct noctule_node *node) {
    int error;
    while (mosquitto_want_write(mqtt.client)) {
        if ((error = mosquitto_loop_write(mqtt.client, 1)) != MOSQ_ERR_SUCCESS)
            return failed(node, "mosquitto_loop_write", error);
        if (mosquitto_want_write(mqtt.client)) await(POLLOUT, NP_IDLE_NS);
    }
    return 0;
}

static int peer_try_receive(struct noctule_node *node) {
    mqtt.delivered = 0;
    int error = mosquitto_loop_read(mqtt.client, 1);
    if (error != MOSQ_ERR_SUCCESS) return failed(node, "mosquitto_loop_read", error);
    return flush(node) == 0 ? mqtt.delivered : -1;
}

static int peer_receive_blocking(struct noctule_node *node, int64_t timeout_ns) {
    return await(POLLIN, timeout_ns) > 0 ? peer_try_receive(node) : 0;
}

static int peer_send(struct noctule_node *node, const void *message, size_t length) {
    int error = mosquitto_publish(mqtt.client, NULL, mqtt.topic, (int)length, message, mqtt.qos, false);
    if (error != MOSQ_ERR_SUCCESS) return failed(node, "mosquitto_publish", error);
    mqtt.sent++;
    if (mqtt.in_callback) return 0;
    if (flush(node) != 0) return -1;
    if (mqtt.qos == 0 || node->subscribe) return 0; /* a node that receives reads its acknowledgements there */
    do {
        if (mqtt.sent - mqtt.acknowledged >= mqtt.window) await(POLLIN, NP_IDLE_NS);
        if (peer_try_receive(node) < 0) return -1;
    } while (mqtt.sent - mqtt.acknowledged >= mqtt.window);
    return 0;
}

static void peer_close(struct noctule_node *node) {
    (void)node;
    if (mqtt.client) mosquitto_disconnect(mqtt.client), mosquitto_destroy(mqtt.client);
    mosquitto_lib_cleanup();
    if (mqtt.broker > 0) kill(mqtt.broker, SIGKILL), waitpid(mqtt.broker, NULL, 0);
}

int main(int argc, char **argv) {
    static const struct noctule_peer peer = {
        .name = "mqtt", .links = "tcp", .waits = "spin,block,hybrid", .modes = "round_trip,one_way,chain,fan_out",
        .max_payload_bytes = 16 << 20, .version = mqtt_version, .open = peer_open, .connect = peer_connect,
        .send = peer_send, .try_receive = peer_try_receive, .receive_blocking = peer_receive_blocking,
        .close = peer_close,
    };
    return noctule_peer_main(argc, argv, &peer);
}
