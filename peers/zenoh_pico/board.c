/* The board: Zenoh-pico as firmware without an operating system has it, single-threaded, a client over a serial line.
 *
 * The peer's Rust program starts this one for the node that is the board and hands it the lab's lines; it is no
 * peer of its own. The companion computer runs Zenoh with that line as a listener.
 *
 * Zenoh-pico reads a frame byte by byte and waits for its end: the line is read when it has something. It knows the speeds up
 * to 230,400 baud by name; the pseudo-terminal has no speed, the lab's carrier has, so that is its setting for faster lines.
 * A node that only receives says every two seconds that it lives, as Zenoh's lease of ten asks. */
#include "../harness/noctule_peer.h"

#include <dirent.h>
#include <zenoh-pico.h>

#define FASTEST_BAUD 230400
#define KEEP_ALIVE_NS INT64_C(2000000000)
#define LOOK_NS INT64_C(5000000)

static struct {
    struct noctule_node *node;
    z_owned_session_t session;
    z_owned_publisher_t publisher;
    z_owned_subscriber_t subscriber, starter;
    z_owned_liveliness_token_t token;
    bool is_open, started;
    int line; /* Zenoh-pico's descriptor of the device */
    int delivered;
    int64_t kept_alive_ns;
} board = { .line = -1 };

static const char *board_version(void) { return "pico"; }

static int board_open(struct noctule_node *node) {
    board.node = node;
    if (np_value(&node->open_line, "device")) return 0;
    return noctule_fail(node, "the board needs device=…: use link = \"serial\"");
}

static int failed(struct noctule_node *node, const char *call, z_result_t error) {
    return noctule_fail(node, "%s: error %d of Zenoh-pico", call, (int)error);
}

static void on_message(z_loaned_sample_t *sample, void *unused) {
    z_owned_slice_t bytes; /* a copy: the view of what has not been copied is not stable in Zenoh-pico's interface */
    (void)unused;
    if (z_bytes_to_slice(z_sample_payload(sample), &bytes) != Z_OK) return;
    noctule_deliver(board.node, z_slice_data(z_loan(bytes)), z_slice_len(z_loan(bytes)));
    z_drop(z_move(bytes));
    board.delivered++;
}

static void on_start(z_loaned_sample_t *sample, void *unused) {
    (void)sample, (void)unused;
    board.started = true;
}

/* The descriptor that Zenoh-pico has opened: it does not tell. */
static int find_line(const char *device) {
    char path[300], target[512];
    DIR *open_files = opendir("/proc/self/fd");
    int found = -1;
    for (struct dirent *entry; open_files && (entry = readdir(open_files));) {
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = 0;
        if (strcmp(target, device) == 0) found = atoi(entry->d_name);
    }
    if (open_files) closedir(open_files);
    return found;
}

static int open_session(struct noctule_node *node, int64_t end_ns) {
    const char *device = np_value(&node->open_line, "device");
    char endpoint[512], real[512];
    int baud = atoi(noctule_option(node, "baud", "115200"));
    snprintf(endpoint, sizeof endpoint, "serial/%s#baudrate=%d", device, baud > FASTEST_BAUD ? FASTEST_BAUD : baud);
    noctule_setting(node, "endpoint", "%s", endpoint);
    z_result_t error = Z_OK;
    while (!board.is_open) {
        z_owned_config_t config;
        if (noctule_now_ns() > end_ns) return failed(node, "z_open did not find the companion for 10 s", error);
        z_config_default(&config);
        zp_config_insert(z_loan_mut(config), Z_CONFIG_MODE_KEY, Z_CONFIG_MODE_CLIENT);
        zp_config_insert(z_loan_mut(config), Z_CONFIG_CONNECT_KEY, endpoint);
        error = z_open(&board.session, z_move(config), NULL);
        board.is_open = error == Z_OK;
    }
    if (!realpath(device, real)) return noctule_fail(node, "%s is not there: %s", device, strerror(errno));
    board.line = find_line(real);
    return board.line >= 0 ? 0 : noctule_fail(node, "Zenoh-pico has not opened %s", real);
}

static int declare(struct noctule_node *node) {
    char name[256];
    z_view_keyexpr_t key;
    z_owned_closure_sample_t closure;
    z_publisher_options_t options;
    z_publisher_options_default(&options);
    options.is_express = true;
    z_result_t error = Z_OK;
    if (node->subscribe) {
        snprintf(name, sizeof name, "%s/%s", node->session, node->subscribe);
        z_view_keyexpr_from_str_unchecked(&key, name);
        z_closure(&closure, on_message, NULL, NULL);
        error = z_declare_subscriber(z_loan(board.session), &board.subscriber, z_loan(key), z_move(closure), NULL);
        if (error != Z_OK) return failed(node, "z_declare_subscriber", error);
    }
    snprintf(name, sizeof name, "%s/start", node->session);
    z_view_keyexpr_from_str_unchecked(&key, name);
    z_closure(&closure, on_start, NULL, NULL);
    error = z_declare_subscriber(z_loan(board.session), &board.starter, z_loan(key), z_move(closure), NULL);
    if (error != Z_OK) return failed(node, "z_declare_subscriber", error);
    if (node->publish) {
        snprintf(name, sizeof name, "%s/%s", node->session, node->publish);
        z_view_keyexpr_from_str_unchecked(&key, name);
        error = z_declare_publisher(z_loan(board.session), &board.publisher, z_loan(key), &options);
        if (error != Z_OK) return failed(node, "z_declare_publisher", error);
    }
    /* Last: the companion looks for it, and says `start` when it is there. */
    snprintf(name, sizeof name, "%s/board", node->session);
    z_view_keyexpr_from_str_unchecked(&key, name);
    error = z_liveliness_declare_token(z_loan(board.session), &board.token, z_loan(key), NULL);
    return error == Z_OK ? 0 : failed(node, "z_liveliness_declare_token", error);
}

static void keep_alive(int64_t now) {
    if (now - board.kept_alive_ns < KEEP_ALIVE_NS) return;
    zp_send_keep_alive(z_loan(board.session), NULL);
    board.kept_alive_ns = now;
}

static int board_receive(struct noctule_node *node, int64_t timeout_ns) {
    struct timespec timeout = { timeout_ns / 1000000000, timeout_ns % 1000000000 };
    struct pollfd ready = { board.line, POLLIN, 0 };
    board.delivered = 0;
    keep_alive(noctule_now_ns());
    if (ppoll(&ready, 1, &timeout, NULL) <= 0) return 0;
    z_result_t error = zp_read(z_loan(board.session), NULL);
    return error < 0 ? failed(node, "zp_read", error) : board.delivered;
}

static int board_try_receive(struct noctule_node *node) { return board_receive(node, 0); }

static int board_connect(struct noctule_node *node) {
    int64_t end_ns = noctule_now_ns() + NOCTULE_MATCH_TIMEOUT_NS;
    if (open_session(node, end_ns) != 0 || declare(node) != 0) return -1;
    board.kept_alive_ns = noctule_now_ns();
    while (!board.started) {
        if (noctule_now_ns() > end_ns) return noctule_fail(node, "the companion did not find this board's token in 10 s");
        if (board_receive(node, LOOK_NS) < 0) return -1;
    }
    return 0;
}

static int board_send(struct noctule_node *node, const void *message, size_t length) {
    z_owned_bytes_t payload;
    z_publisher_put_options_t options;
    z_publisher_put_options_default(&options);
    z_result_t error = z_bytes_copy_from_buf(&payload, message, length);
    if (error == Z_OK) error = z_publisher_put(z_loan(board.publisher), z_move(payload), &options);
    return error == Z_OK ? 0 : failed(node, "z_publisher_put", error);
}

static void board_close(struct noctule_node *node) {
    (void)node;
    if (board.is_open) z_drop(z_move(board.session));
}

int main(int argc, char **argv) {
    static const struct noctule_peer peer = {
        .name = "zenoh_pico", .links = "serial", .waits = "block", .modes = "round_trip,one_way",
        .max_payload_bytes = 1024, .version = board_version, .open = board_open, .connect = board_connect,
        .send = board_send, .try_receive = board_try_receive, .receive_blocking = board_receive, .close = board_close,
    };
    return noctule_peer_main(argc, argv, &peer);
}
