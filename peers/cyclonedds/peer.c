/* Cyclone DDS under test: one domain, one writer and one reader per node, bytes as an unbounded sequence.
 *
 * On a loopback address, discovery and data are unicast to 127.0.0.1, so nothing leaves the host and no
 * multicast is needed. On another address (two hosts, or two namespaces) discovery is multicast on that interface.
 *
 * Debian's build could also use iceoryx's shared memory. It is not offered: it needs iceoryx's daemon for the whole
 * machine, and spares copies only for types whose size is fixed when they are compiled; tried with the daemon running,
 * this sequence was not faster than over UDP.
 *
 * Options: reliability=reliable|best_effort, history=keep_last|keep_all (keep_last has the depth of the window; a keep_all
 * writer waits up to 1 s for a slow reader), fragment_bytes=N and message_bytes=N (Cyclone's FragmentSize and
 * MaxMessageSize), nack_delay_ms=N (how long a reader waits before it asks for what is missing; 100), heartbeat_ms=N (how
 * often a writer asks what is missing; 100), lifespan_ms=N (the deadline, as DDS can say it: older data is neither
 * repaired nor delivered; DDS's DEADLINE only reports that nothing came), multicast=1 (data too, to several readers; not
 * on a loopback address).
 *
 * To meet what others have made: domain=N, and topic=NAME with type=NAME. A message is then octet[payload_bytes]
 * under these very names, so that CDR is the message and nothing else, as a board publishes it. */
#include "../harness/noctule_peer.h"

#include "bench_msgs.h"
#include <dds/dds.h>
#include <dds/version.h>

#define TAKE_AT_ONCE 8
#define MAX_BLOCKING DDS_SECS(1)  /* reliable: how long a write may wait for a reader that does not keep up */
#define MAX_PARTICIPANTS 64       /* on this host and domain: bounds the ports that discovery probes */

static struct {
    dds_entity_t domain, participant, writer, reader, condition, waitset;
    bool named; /* a message is the sample itself, not a sequence in one */
} dds;

static const char *cyclone_version(void) { return DDS_VERSION; } /* it offers none at run time */

/* Sessions must not hear each other, nor other DDS programs of this host, which are mostly in domain 0. */
static dds_domainid_t domain_of(const char *session) {
    uint32_t hash = 2166136261u;
    for (; *session; session++) hash = (hash ^ (unsigned char)*session) * 16777619u;
    return 1 + hash % 200;
}

static int create_domain(struct noctule_node *node) {
    bool loopback = strncmp(node->bind_address, "127.", 4) == 0;
    /* A datagram of lo takes 65,507 bytes: no reason to cut messages into pieces of an Ethernet frame. */
    const char *fragment = noctule_option(node, "fragment_bytes", loopback ? "60000" : "1344");
    const char *message = noctule_option(node, "message_bytes", loopback ? "65500" : "14720");
    const char *nack_ms = noctule_option(node, "nack_delay_ms", "100");
    const char *heartbeat_ms = noctule_option(node, "heartbeat_ms", "100");
    bool multicast = strcmp(noctule_option(node, "multicast", "0"), "1") == 0;
    char peers[64] = "", xml[1280];
    if (loopback) snprintf(peers, sizeof peers, "<Peers><Peer address=\"127.0.0.1\"/></Peers>");
    snprintf(xml, sizeof xml,
             "<General><Interfaces><NetworkInterface address=\"%s\"/></Interfaces><AllowMulticast>%s</AllowMulticast>"
             "<FragmentSize>%sB</FragmentSize><MaxMessageSize>%sB</MaxMessageSize></General>"
             "<Discovery><ParticipantIndex>auto</ParticipantIndex>"
             "<MaxAutoParticipantIndex>%d</MaxAutoParticipantIndex>%s</Discovery>"
             "<Internal><SocketReceiveBufferSize max=\"4MB\"/><NackDelay>%sms</NackDelay>"
             "<HeartbeatInterval>%sms</HeartbeatInterval></Internal>",
             node->bind_address, loopback ? "false" : multicast ? "true" : "spdp", fragment, message, MAX_PARTICIPANTS - 1, peers, nack_ms,
             heartbeat_ms);
    const char *given = noctule_option(node, "domain", NULL);
    dds_domainid_t id = given ? (dds_domainid_t)strtoul(given, NULL, 10) : domain_of(node->session);
    dds.domain = dds_create_domain(id, xml);
    dds.participant = dds.domain < 0 ? dds.domain : dds_create_participant(id, NULL, NULL);
    if (dds.participant < 0)
        return noctule_fail(node, "no domain on %s: %s", node->bind_address, dds_strretcode(dds.participant));
    noctule_setting(node, "domain", "%u", (unsigned)id);
    noctule_setting(node, "discovery", "%s", loopback ? "unicast" : "multicast");
    noctule_setting(node, "multicast", "%s", multicast && !loopback ? "data" : "discovery");
    noctule_setting(node, "fragment_bytes", "%s", fragment);
    noctule_setting(node, "message_bytes", "%s", message);
    noctule_setting(node, "nack_delay_ms", "%s", nack_ms);
    noctule_setting(node, "heartbeat_ms", "%s", heartbeat_ms);
    return 0;
}

static dds_qos_t *qos_of(struct noctule_node *node) {
    const char *reliability = noctule_option(node, "reliability", "reliable");
    const char *history = noctule_option(node, "history", "keep_last");
    dds_qos_t *qos = dds_create_qos();
    bool reliable = strcmp(reliability, "reliable") == 0, all = strcmp(history, "keep_all") == 0;
    if (!reliable && strcmp(reliability, "best_effort") != 0)
        noctule_fail(node, "option.reliability=%.40s is neither reliable nor best_effort", reliability);
    if (!all && strcmp(history, "keep_last") != 0)
        noctule_fail(node, "option.history=%.40s is neither keep_last nor keep_all", history);
    dds_qset_reliability(qos, reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT, MAX_BLOCKING);
    dds_qset_history(qos, all ? DDS_HISTORY_KEEP_ALL : DDS_HISTORY_KEEP_LAST, all ? 0 : (int32_t)node->window);
    if (all) dds_qset_resource_limits(qos, (int32_t)node->window, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
    int lifespan_ms = atoi(noctule_option(node, "lifespan_ms", "0"));
    if (lifespan_ms > 0) dds_qset_lifespan(qos, DDS_MSECS(lifespan_ms));
    noctule_setting(node, "lifespan_ms", "%s", noctule_option(node, "lifespan_ms", "infinite"));
    noctule_setting(node, "reliability", "%s", reliability);
    noctule_setting(node, "history", "%s %d", history, (int)node->window);
    return qos;
}

/* The topic that the options name, of as many octets as a message has: what idlc makes of
 * `@final struct S { octet bytes[N]; };` for an N that is known only now. */
static dds_entity_t named_topic(struct noctule_node *node, const char *name) {
    static uint32_t operations[] = { DDS_OP_ADR | DDS_OP_TYPE_ARR | DDS_OP_SUBTYPE_1BY, 0, 0, DDS_OP_RTS };
    operations[2] = (uint32_t)node->payload_bytes;
    const char *type = noctule_option(node, "type", NULL);
    if (!type) return noctule_fail(node, "option.topic=%.100s needs option.type=NAME beside it", name);
    const dds_topic_descriptor_t descriptor = {
        .m_size = (uint32_t)node->payload_bytes, .m_align = 1, .m_flagset = DDS_TOPIC_FIXED_SIZE,
        .m_typename = type, .m_nops = 2, .m_ops = operations, .m_meta = "",
    };
    return dds_create_topic(dds.participant, &descriptor, name, NULL, NULL);
}

static dds_entity_t topic_of(struct noctule_node *node, const char *name) {
    char full[512];
    const char *given = noctule_option(node, "topic", NULL);
    dds.named = given != NULL;
    if (given) return named_topic(node, given);
    snprintf(full, sizeof full, "%s/%s", node->session, name);
    return dds_create_topic(dds.participant, &bench_msgs_msg_dds__Message__desc, full, NULL, NULL);
}

static int cyclone_open(struct noctule_node *node) {
    if (create_domain(node) != 0) return -1;
    dds_qos_t *qos = qos_of(node);
    if (node->publish) dds.writer = dds_create_writer(dds.participant, topic_of(node, node->publish), qos, NULL);
    if (node->subscribe) {
        dds.reader = dds_create_reader(dds.participant, topic_of(node, node->subscribe), qos, NULL);
        dds.condition = dds_create_readcondition(dds.reader, DDS_ANY_STATE);
        dds.waitset = dds_create_waitset(dds.participant);
    }
    dds_delete_qos(qos);
    if (dds.writer < 0 || dds.reader < 0 || dds.condition < 0 || dds.waitset < 0)
        return noctule_fail(node, "a writer or reader could not be created");
    if (node->subscribe && dds_waitset_attach(dds.waitset, dds.condition, 0) != 0)
        return noctule_fail(node, "the reader cannot be waited for");
    return node->error[0] ? -1 : 0;
}

static int cyclone_connect(struct noctule_node *node) {
    dds_publication_matched_status_t readers;
    dds_subscription_matched_status_t writers;
    int64_t end_ns = noctule_now_ns() + NOCTULE_MATCH_TIMEOUT_NS;
    for (;;) {
        memset(&readers, 0, sizeof readers);
        memset(&writers, 0, sizeof writers);
        if (node->publish) dds_get_publication_matched_status(dds.writer, &readers);
        if (node->subscribe) dds_get_subscription_matched_status(dds.reader, &writers);
        if (readers.current_count >= node->readers && (!node->subscribe || writers.current_count >= 1)) return 0;
        if (noctule_now_ns() > end_ns)
            return noctule_fail(node, "discovery found %u of %d readers and %u writers in 10 s", readers.current_count,
                                (int)node->readers, writers.current_count);
        dds_sleepfor(DDS_MSECS(1));
    }
}

static int cyclone_send(struct noctule_node *node, const void *message, size_t length) {
    bench_msgs_msg_dds__Message_ sample;
    sample.bytes._maximum = sample.bytes._length = (uint32_t)length;
    sample.bytes._buffer = (uint8_t *)message; /* only read */
    sample.bytes._release = false;
    dds_return_t result = dds_write(dds.writer, dds.named ? message : &sample);
    if (result == DDS_RETCODE_OK) return 0;
    return noctule_fail(node, "dds_write: %s%s", dds_strretcode(result),
                        result == DDS_RETCODE_TIMEOUT ? " (the reader did not keep up for 1 s)" : "");
}

static int cyclone_try_receive(struct noctule_node *node) {
    void *samples[TAKE_AT_ONCE] = { NULL }; /* NULL: Cyclone lends its own */
    dds_sample_info_t information[TAKE_AT_ONCE];
    dds_return_t taken = dds_take(dds.reader, samples, information, TAKE_AT_ONCE, TAKE_AT_ONCE);
    if (taken < 0) return noctule_fail(node, "dds_take: %s", dds_strretcode(taken));
    int delivered = 0;
    for (int i = 0; i < taken; i++) {
        if (!information[i].valid_data) continue; /* only news about the writer */
        const bench_msgs_msg_dds__Message_ *sample = (const bench_msgs_msg_dds__Message_ *)samples[i];
        if (dds.named) noctule_deliver(node, samples[i], node->payload_bytes);
        else noctule_deliver(node, sample->bytes._buffer, sample->bytes._length);
        delivered++;
    }
    if (taken > 0) dds_return_loan(dds.reader, samples, taken);
    return delivered;
}

static int cyclone_receive_blocking(struct noctule_node *node, int64_t timeout_ns) {
    dds_attach_t ready[1];
    dds_return_t result = dds_waitset_wait(dds.waitset, ready, 1, timeout_ns);
    if (result < 0) return noctule_fail(node, "dds_waitset_wait: %s", dds_strretcode(result));
    return result == 0 ? 0 : cyclone_try_receive(node);
}

static void cyclone_close(struct noctule_node *node) {
    (void)node;
    if (dds.domain > 0) dds_delete(dds.domain); /* and everything in it */
}

int main(int argc, char **argv) {
    static const struct noctule_peer peer = {
        .name = "cyclonedds", .links = "udp", .waits = "spin,block,hybrid",
        .modes = "round_trip,one_way,chain,fan_out", .max_payload_bytes = 16 << 20, .receives_in_thread = true,
        .version = cyclone_version, .open = cyclone_open, .connect = cyclone_connect, .send = cyclone_send,
        .try_receive = cyclone_try_receive, .receive_blocking = cyclone_receive_blocking, .close = cyclone_close,
    };
    return noctule_peer_main(argc, argv, &peer);
}
