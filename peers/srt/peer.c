/* SRT (Secure Reliable Transport) under test: one connection per reader, called by the writer.
 *
 * Live mode, as SRT is meant to be used: a message is one packet of at most 1,456 bytes; the receiver hands it out at the
 * sender's time + the way + `latency_ms`, repairs what it can until then by NACKs, and gives up what comes later
 * (TSBPD, TLPKTDROP). So the deadline is the latency: with a deadline of D over a link of delay L, latency_ms = D − L
 * − a margin for the operating system is what its users set; at least 3 to 4 round trips are recommended.
 * Messages beyond a packet go in file mode with the message API: reliable, in order, no deadline, AIMD congestion control.
 *
 * Options: latency_ms=N (120, SRT's default), tsbpd=1|0 (0: handed out as soon as it is in order, nothing is given up),
 * transmission=live|file, filter=TEXT (SRTO_PACKETFILTER, such as fec,cols:10,rows:1,arq:onreq: parity beside or instead of repeats). SRT's threads send, receive and time; blocking waits are for one of them. */
#include "../harness/noctule_peer.h"

#include <arpa/inet.h>
#include <srt/srt.h>

#define MAX_READERS 64
#define LIVE_PAYLOAD_BYTES 1456 /* SRT_LIVE_MAX_PLSIZE */
#define SOCKET_BUFFER_BYTES (4 << 20)
#define BUFFER_BYTES (64 << 20) /* of SRT itself, at most; grows with the window */

static struct {
    SRTSOCKET listener, inbound, reader[MAX_READERS];
    size_t readers;
    bool file, blocking;
    int timeout_ms; /* what the inbound socket's receive time-out is set to */
    int message_bytes;
    char *message;
} srt;

static const char *srt_version(void) {
    static char text[32];
    uint32_t version = srt_getversion();
    snprintf(text, sizeof text, "%u.%u.%u", version >> 16, version >> 8 & 255, version & 255);
    return text;
}

static int set(struct noctule_node *node, SRTSOCKET socket, SRT_SOCKOPT option, const char *name, int value) {
    if (srt_setsockflag(socket, option, &value, sizeof value) == 0) return 0;
    return noctule_fail(node, "%s=%d was refused: %s", name, value, srt_getlasterror_str());
}

/* A socket with all that must be set before it is bound. */
static SRTSOCKET create(struct noctule_node *node) {
    SRTSOCKET socket = srt_create_socket();
    int type = srt.file ? SRTT_FILE : SRTT_LIVE, latency_ms = atoi(noctule_option(node, "latency_ms", "120"));
    int tsbpd = srt.file ? 0 : atoi(noctule_option(node, "tsbpd", "1"));
    uint64_t wanted = (node->window + 4) * (node->payload_bytes + 1500);
    int bytes = (int)(wanted < (12u << 20) ? 12u << 20 : wanted > BUFFER_BYTES ? BUFFER_BYTES : wanted);
    if (socket == SRT_INVALID_SOCK) return noctule_fail(node, "no SRT socket: %s", srt_getlasterror_str());
    set(node, socket, SRTO_TRANSTYPE, "TRANSTYPE", type);
    set(node, socket, SRTO_MESSAGEAPI, "MESSAGEAPI", 1);
    if (!srt.file) set(node, socket, SRTO_PAYLOADSIZE, "PAYLOADSIZE", LIVE_PAYLOAD_BYTES);
    set(node, socket, SRTO_TSBPDMODE, "TSBPDMODE", tsbpd);
    if (!srt.file) set(node, socket, SRTO_TLPKTDROP, "TLPKTDROP", tsbpd);
    if (tsbpd) set(node, socket, SRTO_LATENCY, "LATENCY", latency_ms);
    const char *filter = noctule_option(node, "filter", "");
    if (filter[0] && srt_setsockopt(socket, 0, SRTO_PACKETFILTER, filter, (int)strlen(filter)) != 0)
        noctule_fail(node, "option.filter=%.80s was refused: %s", filter, srt_getlasterror_str());
    set(node, socket, SRTO_FC, "FC", bytes / 1456 + 32);
    set(node, socket, SRTO_RCVBUF, "RCVBUF", bytes);
    set(node, socket, SRTO_SNDBUF, "SNDBUF", bytes);
    set(node, socket, SRTO_UDP_RCVBUF, "UDP_RCVBUF", SOCKET_BUFFER_BYTES);
    set(node, socket, SRTO_UDP_SNDBUF, "UDP_SNDBUF", SOCKET_BUFFER_BYTES);
    return node->error[0] ? SRT_INVALID_SOCK : socket;
}

static int peer_open(struct noctule_node *node) {
    const char *otherwise = node->payload_bytes > LIVE_PAYLOAD_BYTES ? "file" : "live";
    const char *transmission = noctule_option(node, "transmission", otherwise);
    struct sockaddr_in own = { .sin_family = AF_INET };
    int size = sizeof own;
    srt.listener = srt.inbound = SRT_INVALID_SOCK;
    srt.file = strcmp(transmission, "file") == 0;
    if (!srt.file && strcmp(transmission, "live") != 0)
        return noctule_fail(node, "option.transmission=%.40s is neither live nor file", transmission);
    if (!srt.file && node->payload_bytes > LIVE_PAYLOAD_BYTES)
        return noctule_fail(node, "a live message is one packet of at most %d bytes: say option.transmission=file",
                            LIVE_PAYLOAD_BYTES);
    srt_setloglevel(2); /* LOG_CRIT: a writer that closes is no error here */
    if (srt_startup() < 0) return noctule_fail(node, "SRT does not start: %s", srt_getlasterror_str());
    srt.message_bytes = (int)node->payload_bytes + 1; /* one more: an overlong message must not look right */
    if (srt.message_bytes < LIVE_PAYLOAD_BYTES) srt.message_bytes = LIVE_PAYLOAD_BYTES;
    srt.message = malloc((size_t)srt.message_bytes);
    noctule_setting(node, "transmission", "%s", transmission);
    noctule_setting(node, "filter", "%s", noctule_option(node, "filter", "none"));
    noctule_setting(node, "tsbpd", "%s", srt.file ? "0" : noctule_option(node, "tsbpd", "1"));
    noctule_setting(node, "latency_ms", "%s", srt.file ? "none" : noctule_option(node, "latency_ms", "120"));
    if (!srt.message) return noctule_fail(node, "there is no memory for a message");
    if (!node->subscribe) return 0;
    srt.listener = create(node);
    if (srt.listener == SRT_INVALID_SOCK) return -1;
    if (inet_pton(AF_INET, node->bind_address, &own.sin_addr) != 1)
        return noctule_fail(node, "bind_address=%s is not an IPv4 address", node->bind_address);
    set(node, srt.listener, SRTO_RCVSYN, "RCVSYN", 0);
    if (srt_bind(srt.listener, (struct sockaddr *)&own, sizeof own) != 0 || srt_listen(srt.listener, 1) != 0 ||
        srt_getsockname(srt.listener, (struct sockaddr *)&own, &size) != 0)
        return noctule_fail(node, "cannot listen on %s: %s", node->bind_address, srt_getlasterror_str());
    snprintf(node->address, sizeof node->address, "%s:%d", node->bind_address, ntohs(own.sin_port));
    return node->error[0] ? -1 : 0;
}

static int call(struct noctule_node *node, char *address) {
    char *port = strrchr(address, ':');
    struct sockaddr_in reader = { .sin_family = AF_INET };
    if (srt.readers == MAX_READERS) return noctule_fail(node, "more than %d readers: use fewer", MAX_READERS);
    if (port) *port++ = 0;
    if (!port || inet_pton(AF_INET, address, &reader.sin_addr) != 1)
        return noctule_fail(node, "the reader address %s is not HOST:PORT", address);
    reader.sin_port = htons((uint16_t)atoi(port));
    SRTSOCKET socket = create(node);
    if (socket == SRT_INVALID_SOCK) return -1;
    srt.reader[srt.readers++] = socket;
    if (srt_connect(socket, (struct sockaddr *)&reader, sizeof reader) == 0) return 0;
    return noctule_fail(node, "no connection to %s: %s", address, srt_getlasterror_str());
}

static int peer_connect(struct noctule_node *node) {
    char list[4096], *rest = NULL;
    int64_t end_ns = noctule_now_ns() + NOCTULE_MATCH_TIMEOUT_NS;
    snprintf(list, sizeof list, "%s", node->reader_addresses);
    /* The reader's library answers by itself, so two nodes may do this in any order. */
    for (char *entry = strtok_r(list, ",", &rest); entry; entry = strtok_r(NULL, ",", &rest))
        if (call(node, entry) != 0) return -1;
    if (srt.readers != node->readers)
        return noctule_fail(node, "%zu reader addresses were given for %d readers", srt.readers, (int)node->readers);
    while (node->subscribe && srt.inbound == SRT_INVALID_SOCK) {
        srt.inbound = srt_accept(srt.listener, NULL, NULL);
        if (srt.inbound == SRT_INVALID_SOCK && noctule_now_ns() > end_ns)
            return noctule_fail(node, "no writer has connected within 10 s");
        struct timespec pause = { 0, 1000000 };
        if (srt.inbound == SRT_INVALID_SOCK) nanosleep(&pause, NULL);
    }
    return 0;
}

static int peer_send(struct noctule_node *node, const void *message, size_t length) {
    for (size_t i = 0; i < srt.readers; i++) {
        SRT_MSGCTRL control = srt_msgctrl_default;
        control.inorder = 1; /* file mode; live always is */
        if (srt_sendmsg2(srt.reader[i], message, (int)length, &control) == SRT_ERROR)
            return noctule_fail(node, "srt_sendmsg2: %s", srt_getlasterror_str());
    }
    return 0;
}

/* `timeout_ms` = 0: what is there. Switching costs a lock, so it is done only where it changes. */
static int receive(struct noctule_node *node, int timeout_ms) {
    bool blocking = timeout_ms > 0;
    if (blocking != srt.blocking && set(node, srt.inbound, SRTO_RCVSYN, "RCVSYN", blocking) != 0) return -1;
    srt.blocking = blocking;
    if (blocking && timeout_ms != srt.timeout_ms) {
        if (set(node, srt.inbound, SRTO_RCVTIMEO, "RCVTIMEO", timeout_ms) != 0) return -1;
        srt.timeout_ms = timeout_ms;
    }
    int got = srt_recvmsg(srt.inbound, srt.message, srt.message_bytes);
    if (got >= 0) {
        noctule_deliver(node, srt.message, (size_t)got);
        return 1;
    }
    int reason = srt_getlasterror(NULL);
    if (reason == SRT_EASYNCRCV || reason == SRT_ETIMEOUT) return 0;
    return noctule_fail(node, "srt_recvmsg: %s", srt_getlasterror_str());
}

static int peer_try_receive(struct noctule_node *node) { return receive(node, 0); }

/* Time-outs are whole milliseconds: rounded down, so that a schedule is met. */
static int peer_receive_blocking(struct noctule_node *node, int64_t timeout_ns) {
    return receive(node, (int)(timeout_ns / 1000000));
}

/* Retransmitted datagrams as a share of first transmissions. */
static void peer_facts(struct noctule_node *node) {
    double sent = 0, again = 0;
    for (size_t i = 0; i < srt.readers; i++) {
        SRT_TRACEBSTATS trace;
        if (srt_bstats(srt.reader[i], &trace, 0) != 0) continue;
        again += (double)trace.byteRetransTotal;
        sent += (double)(trace.byteSentTotal - trace.byteRetransTotal);
    }
    if (sent > 0) noctule_fact(node, "redundancy", again / sent);
}

static void peer_close(struct noctule_node *node) {
    /* By then the receivers have ended: what has not left, which may be seconds of megabytes, is not needed any more. */
    struct linger none = { .l_onoff = 1, .l_linger = 0 };
    (void)node;
    for (size_t i = 0; i < srt.readers; i++) {
        srt_setsockflag(srt.reader[i], SRTO_LINGER, &none, sizeof none);
        srt_close(srt.reader[i]);
    }
    if (srt.inbound != SRT_INVALID_SOCK) srt_close(srt.inbound);
    if (srt.listener != SRT_INVALID_SOCK) srt_close(srt.listener);
    srt_cleanup();
    free(srt.message);
}

int main(int argc, char **argv) {
    static const struct noctule_peer peer = {
        .name = "srt", .links = "udp", .waits = "spin,block,hybrid", .modes = "round_trip,one_way,chain,fan_out",
        .max_payload_bytes = 16 << 20, .receives_in_thread = true, .version = srt_version, .open = peer_open,
        .connect = peer_connect, .send = peer_send, .try_receive = peer_try_receive,
        .receive_blocking = peer_receive_blocking, .facts = peer_facts, .close = peer_close,
    };
    return noctule_peer_main(argc, argv, &peer);
}
