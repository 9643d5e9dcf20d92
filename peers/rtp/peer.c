/* RTP (RFC 3550) over UDP under test, in the profile AVP: no feedback, so nothing is repaired.
 *
 * There is no library to measure. Debian's oRTP is AGPL and GNU ccRTP GPL, GStreamer and FFmpeg bring a media pipeline, and the
 * Rust crates an asynchronous runtime for WebRTC; what all of them put on the wire for such a stream is this header of
 * twelve bytes and their payload format's. So it is written and read here. No RTCP is sent: its reports, at most 5 % of the stream, repair nothing
 * in this profile.
 *
 * A message is one frame: packets of at most 1,400 bytes of payload with one time stamp (90 kHz), consecutive sequence
 * numbers and the marker bit on the last; the payload begins with the packet's offset in the frame, as the format of RFC 2435
 * (JPEG) has it. The receiver puts a frame together in order of sequence numbers; a frame of which a packet is lost or
 * overtaken is not delivered, as a player without a jitter buffer does.
 *
 * A fact at the end: `lost_packets`, by gaps of the sequence, of the first node. */
#include "../harness/noctule_peer.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#define MAX_READERS 64
#define SOCKET_BUFFER_BYTES (4 << 20)
#define HEADER_BYTES 16 /* RTP's twelve and the offset */
#define PAYLOAD_BYTES 1400
#define FRAME_BYTES_MAX (1 << 20)
#define FIRST_BYTE 0x80   /* version 2, no padding, extension or contributing source */
#define PAYLOAD_TYPE 96   /* the first dynamic one */
#define MARKER 0x80
#define TICKS_HZ 90000

static struct {
    int socket;
    size_t readers;
    int reader[MAX_READERS];
    uint32_t source;            /* SSRC */
    uint16_t sequence, expected; /* of the next packet to send, to come */
    bool synchronized;          /* a packet has come */
    size_t filled_bytes;
    uint64_t lost_packets;
    unsigned char frame[FRAME_BYTES_MAX], packet[HEADER_BYTES + PAYLOAD_BYTES];
} rtp;

static const char *rtp_version(void) { return "RFC 3550"; }

static int rtp_open(struct noctule_node *node) {
    struct sockaddr_in own = { .sin_family = AF_INET };
    socklen_t size = sizeof own;
    int bytes = SOCKET_BUFFER_BYTES;
    rtp.socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (inet_pton(AF_INET, node->bind_address, &own.sin_addr) != 1)
        return noctule_fail(node, "bind_address=%s is not an IPv4 address", node->bind_address);
    if (rtp.socket < 0 || bind(rtp.socket, (struct sockaddr *)&own, sizeof own) != 0 ||
        getsockname(rtp.socket, (struct sockaddr *)&own, &size) != 0)
        return noctule_fail(node, "no UDP socket on %s: %s", node->bind_address, strerror(errno));
    setsockopt(rtp.socket, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    size = sizeof bytes;
    getsockopt(rtp.socket, SOL_SOCKET, SO_RCVBUF, &bytes, &size);
    for (const char *c = node->session; *c; c++) rtp.source = rtp.source * 31 + (unsigned char)*c;
    rtp.source += (uint32_t)node->node;
    rtp.sequence = (uint16_t)rtp.source; /* RFC 3550 wants a start that cannot be guessed, against attackers */
    noctule_setting(node, "profile", "AVP");
    noctule_setting(node, "packet_payload_bytes", "%d", PAYLOAD_BYTES);
    noctule_setting(node, "receive_buffer_bytes", "%d", bytes);
    if (node->subscribe)
        snprintf(node->address, sizeof node->address, "%s:%d", node->bind_address, ntohs(own.sin_port));
    return 0;
}

static int rtp_connect(struct noctule_node *node) {
    char list[4096], *rest = NULL;
    int bytes = SOCKET_BUFFER_BYTES;
    snprintf(list, sizeof list, "%s", node->reader_addresses);
    for (char *entry = strtok_r(list, ",", &rest); entry; entry = strtok_r(NULL, ",", &rest)) {
        char *port = strrchr(entry, ':');
        struct sockaddr_in reader = { .sin_family = AF_INET };
        if (rtp.readers == MAX_READERS) return noctule_fail(node, "more than %d readers: use fewer", MAX_READERS);
        if (port) *port++ = 0;
        if (!port || inet_pton(AF_INET, entry, &reader.sin_addr) != 1)
            return noctule_fail(node, "the reader address %s is not HOST:PORT", entry);
        reader.sin_port = htons((uint16_t)atoi(port));
        int own = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (own < 0 || connect(own, (struct sockaddr *)&reader, sizeof reader) != 0)
            return noctule_fail(node, "no connection to %s: %s", entry, strerror(errno));
        setsockopt(own, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
        rtp.reader[rtp.readers++] = own;
    }
    if (rtp.readers != node->readers)
        return noctule_fail(node, "%zu reader addresses were given for %d readers", rtp.readers, (int)node->readers);
    return 0;
}

static void put(unsigned char *to, uint32_t value, int bytes) {
    while (bytes--) to[bytes] = (unsigned char)value, value >>= 8;
}

static uint32_t get(const unsigned char *from, int bytes) {
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | from[i];
    return value;
}

static int rtp_send(struct noctule_node *node, const void *message, size_t length) {
    const unsigned char *rest = message;
    uint32_t offset = 0;
    uint32_t ticks = (uint32_t)(noctule_now_ns() / 1000 * TICKS_HZ / 1000000);
    unsigned char header[HEADER_BYTES] = { FIRST_BYTE };
    put(header + 4, ticks, 4);
    put(header + 8, rtp.source, 4);
    while (length) {
        size_t part = length < PAYLOAD_BYTES ? length : PAYLOAD_BYTES;
        struct iovec pieces[2] = { { header, HEADER_BYTES }, { (void *)rest, part } };
        struct msghdr packet = { .msg_iov = pieces, .msg_iovlen = 2 };
        header[1] = PAYLOAD_TYPE | (part == length ? MARKER : 0);
        put(header + 2, rtp.sequence++, 2);
        put(header + 12, offset, 4);
        for (size_t i = 0; i < rtp.readers; i++)
            if (sendmsg(rtp.reader[i], &packet, 0) < 0 && errno != ECONNREFUSED && errno != ENOBUFS)
                return noctule_fail(node, "sendmsg failed: %s", strerror(errno));
        rest += part;
        offset += (uint32_t)part;
        length -= part;
    }
    return 0;
}

/* Takes one packet; 1 if it completed a frame. */
static int rtp_take(struct noctule_node *node, size_t length) {
    uint16_t sequence, ahead;
    size_t offset;
    if (length < HEADER_BYTES || rtp.packet[0] != FIRST_BYTE || (rtp.packet[1] & ~MARKER) != PAYLOAD_TYPE) return 0;
    sequence = (uint16_t)get(rtp.packet + 2, 2);
    ahead = (uint16_t)(sequence - rtp.expected);
    if (rtp.synchronized && ahead >= 0x8000) return 0; /* overtaken: its frame has been given up */
    if (rtp.synchronized) rtp.lost_packets += ahead;
    if (rtp.synchronized && ahead > 0) rtp.filled_bytes = 0; /* what comes may be of another frame */
    rtp.synchronized = true;
    rtp.expected = (uint16_t)(sequence + 1);
    offset = get(rtp.packet + 12, 4);
    if (offset == 0) rtp.filled_bytes = 0;
    length -= HEADER_BYTES;
    if (offset != rtp.filled_bytes || offset + length > sizeof rtp.frame) return 0; /* its frame is given up */
    memcpy(rtp.frame + offset, rtp.packet + HEADER_BYTES, length);
    rtp.filled_bytes += length;
    if (!(rtp.packet[1] & MARKER)) return 0;
    noctule_deliver(node, rtp.frame, rtp.filled_bytes);
    rtp.filled_bytes = 0;
    return 1;
}

static int rtp_receive(struct noctule_node *node) {
    for (;;) {
        ssize_t got = recv(rtp.socket, rtp.packet, sizeof rtp.packet, MSG_DONTWAIT);
        if (got < 0) return errno == EAGAIN || errno == EINTR ? 0 : noctule_fail(node, "recv failed: %s", strerror(errno));
        if (rtp_take(node, (size_t)got)) return 1;
    }
}

static int rtp_receive_blocking(struct noctule_node *node, int64_t timeout_ns) {
    struct timespec timeout = { timeout_ns / 1000000000, timeout_ns % 1000000000 };
    struct pollfd ready = { rtp.socket, POLLIN, 0 };
    return ppoll(&ready, 1, &timeout, NULL) > 0 ? rtp_receive(node) : 0;
}

static void rtp_facts(struct noctule_node *node) {
    if (node->subscribe) noctule_fact(node, "lost_packets", (double)rtp.lost_packets);
}

static void rtp_close(struct noctule_node *node) {
    (void)node;
    if (rtp.socket > 0) close(rtp.socket);
}

int main(int argc, char **argv) {
    static const struct noctule_peer peer = {
        .name = "rtp", .links = "udp", .waits = "spin,block,hybrid", .modes = "round_trip,one_way,chain,fan_out",
        .max_payload_bytes = FRAME_BYTES_MAX, .version = rtp_version, .open = rtp_open, .connect = rtp_connect,
        .send = rtp_send, .try_receive = rtp_receive, .receive_blocking = rtp_receive_blocking, .facts = rtp_facts,
        .close = rtp_close,
    };
    return noctule_peer_main(argc, argv, &peer);
}
