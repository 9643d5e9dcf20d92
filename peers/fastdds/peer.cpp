// Fast DDS under test: RTPS over UDP, over its shared-memory transport, or through data-sharing with loans.
//
// The type is an array of octets as long as the payload, written by hand: what IDL calls `octet bytes[N]`. It is plain
// and bounded, which loans and data-sharing need, and lets a reader look into the received buffer without a copy. It is not
// generated, as the one of peers/cyclonedds is: N is an argument of the run, which no definition can hold, and a sequence of
// octets, whose length may vary, is not plain. Debian has no fastddsgen, either.
//
// On a loopback address discovery is unicast to 127.0.0.1; on another address it is multicast on that interface. With
// the link shm there is no socket at all. After a kill, files named fastrtps_* and fast_datasharing_* stay in /dev/shm;
// the library offers no call to remove them (its tool is `fastdds shm clean`).
//
// Options: reliability=reliable|best_effort (DDS's own words; the default is reliable), history=keep_last|keep_all (the
// depth is the lab's window; a keep_all writer waits up to 1 s for a slow reader), data_sharing=1 (link shm only: the
// writer's history lies in memory that readers map; messages are written in place), heartbeat_ms=N (how often a
// reliable writer asks what is missing; Fast DDS's own 3,000 repairs a lost last message only then),
// nack_response_us=N (how long it gathers requests before it answers; 5,000), heartbeat_response_us=N (how long a reliable
// reader gathers what is missing before it requests it; 5,000), lifespan_ms=N (the deadline, as DDS can
// say it: older data is neither repaired nor delivered; DDS's DEADLINE only reports that nothing came), multicast=1
// (readers take data on a group; not on a loopback address), message_bytes=N (longest datagram; Fast DDS's own 65,500 are
// cut by IP on any other line than loopback, and one lost fragment then loses all 44), flow_bytes_per_s=N (a flow
// controller, each 10 ms, with asynchronous publishing; without one a message leaves in one burst).
#include "../harness/noctule_peer.h"

#include <algorithm>
#include <memory>

#include <fastdds/dds/core/LoanableSequence.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>
#include <fastrtps/config.h>
#include <fastrtps/utils/IPLocator.h>

namespace fdds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;
using eprosima::fastdds::rtps::SharedMemTransportDescriptor;
using eprosima::fastdds::rtps::UDPv4TransportDescriptor;

namespace {

constexpr uint64_t MEMORY_BYTES = 256u << 20;  // histories and segments grow with the window up to this
constexpr uint32_t SOCKET_BUFFER_BYTES = 4u << 20;
constexpr uint32_t MAX_PARTICIPANTS = 64;  // on this host and domain: bounds the ports that discovery probes
constexpr uint32_t TAKE_AT_ONCE = 8;
constexpr const char *FLOW = "lab";
constexpr uint64_t FLOW_PERIOD_MS = 10;
constexpr const char *MULTICAST_GROUP = "239.255.0.3";  // administratively scoped, RFC 2365
constexpr uint32_t MULTICAST_PORT = 17900;

/// `octet bytes[size]`.
class Octets : public fdds::TopicDataType {
public:
    explicit Octets(uint32_t size) : size_(size) {
        m_typeSize = size + rtps::SerializedPayload_t::representation_header_size;
        m_isGetKeyDefined = false;
        setName(("octets" + std::to_string(size)).c_str());
        auto_fill_type_object(false);
        auto_fill_type_information(false);
    }

    bool serialize(void *data, rtps::SerializedPayload_t *payload) override {
        static const unsigned char header[4] = {0, CDR_LE, 0, 0};
        if (payload->max_size < m_typeSize) return false;
        memcpy(payload->data, header, sizeof header);
        memcpy(payload->data + sizeof header, data, size_);
        payload->encapsulation = CDR_LE;
        payload->length = m_typeSize;
        return true;
    }

    bool deserialize(rtps::SerializedPayload_t *payload, void *data) override {
        if (payload->length != m_typeSize) return false;
        memcpy(data, payload->data + 4, size_);
        return true;
    }

    std::function<uint32_t()> getSerializedSizeProvider(void *) override {
        return [this] { return m_typeSize; };
    }
    void *createData() override { return new unsigned char[size_]; }
    void deleteData(void *data) override { delete[] static_cast<unsigned char *>(data); }
    bool getKey(void *, rtps::InstanceHandle_t *, bool) override { return false; }
    bool is_bounded() const override { return true; }
    bool is_plain() const override { return true; }
    bool construct_sample(void *) const override { return true; }

private:
    uint32_t size_;
};

/// Sample type for loans of the middleware's memory: only the address matters.
struct Lent { unsigned char first; };
FASTDDS_SEQUENCE(Loans, Lent);

struct {
    fdds::DomainParticipant *participant;
    fdds::DataWriter *writer;
    fdds::DataReader *reader;
    bool lends;
    int32_t depth;
} fast;

const char *version() { return FASTRTPS_VERSION_STR; }  // of the headers: the library offers none at run time

uint32_t domain_of(const char *session) {
    uint32_t hash = 2166136261u;
    for (; *session; session++) hash = (hash ^ static_cast<unsigned char>(*session)) * 16777619u;
    return 1 + hash % 200;
}

std::shared_ptr<eprosima::fastdds::rtps::TransportDescriptorInterface> transport_of(noctule_node *node) {
    if (strcmp(node->link, "shm") == 0) {
        uint64_t bytes = (node->window + 2) * (node->payload_bytes + 1024);
        auto shm = std::make_shared<SharedMemTransportDescriptor>();
        shm->segment_size(static_cast<uint32_t>(std::clamp<uint64_t>(bytes, 1u << 20, MEMORY_BYTES)));
        shm->max_message_size(std::min<uint32_t>(shm->segment_size(), 64u << 20));
        shm->port_queue_capacity(static_cast<uint32_t>(std::max<uint64_t>(512, 2 * node->window)));
        noctule_setting(node, "segment_bytes", "%u", shm->segment_size());
        return shm;
    }
    auto udp = std::make_shared<UDPv4TransportDescriptor>();
    // With a white list, a group's port is bound to the interface's own address, where no group is heard.
    if (strcmp(noctule_option(node, "multicast", "0"), "1") != 0) udp->interfaceWhiteList.push_back(node->bind_address);
    udp->maxInitialPeersRange = MAX_PARTICIPANTS;
    udp->sendBufferSize = udp->receiveBufferSize = SOCKET_BUFFER_BYTES;
    udp->maxMessageSize = static_cast<uint32_t>(atoi(noctule_option(node, "message_bytes", "65500")));
    noctule_setting(node, "message_bytes", "%u", udp->maxMessageSize);
    noctule_setting(node, "socket_buffer_bytes", "%u", SOCKET_BUFFER_BYTES);
    return udp;
}

int create_participant(noctule_node *node) {
    bool shm = strcmp(node->link, "shm") == 0, loopback = strncmp(node->bind_address, "127.", 4) == 0;
    uint32_t domain = domain_of(node->session);
    fdds::DomainParticipantQos qos;
    qos.transport().use_builtin_transports = false;
    qos.transport().user_transports.push_back(transport_of(node));
    if (!shm && loopback) {
        rtps::Locator_t local;
        rtps::IPLocator::setIPv4(local, node->bind_address);
        qos.wire_protocol().builtin.initialPeersList.push_back(local);
    }
    if (!shm && !loopback && strcmp(noctule_option(node, "multicast", "0"), "1") == 0) {
        rtps::Locator_t group;
        rtps::IPLocator::setIPv4(group, MULTICAST_GROUP);
        group.port = MULTICAST_PORT;
        qos.wire_protocol().default_multicast_locator_list.push_back(group);
        noctule_setting(node, "multicast", "%s:%u", MULTICAST_GROUP, MULTICAST_PORT);
    }
    if (uint64_t flow = strtoull(noctule_option(node, "flow_bytes_per_s", "0"), nullptr, 10)) {
        auto controller = std::make_shared<eprosima::fastdds::rtps::FlowControllerDescriptor>();
        controller->name = FLOW;
        controller->period_ms = FLOW_PERIOD_MS;
        controller->max_bytes_per_period = static_cast<int32_t>(flow * FLOW_PERIOD_MS / 1000);
        qos.flow_controllers().push_back(controller);
    }
    fast.participant = fdds::DomainParticipantFactory::get_instance()->create_participant(domain, qos);
    noctule_setting(node, "domain", "%u", domain);
    noctule_setting(node, "discovery", "%s", shm ? "shared memory" : loopback ? "unicast" : "multicast");
    return fast.participant ? 0 : noctule_fail(node, "no Fast DDS participant on %s", node->bind_address);
}

eprosima::fastrtps::Duration_t milliseconds(uint32_t ms) {
    return eprosima::fastrtps::Duration_t(static_cast<int32_t>(ms / 1000), ms % 1000 * 1000000u);
}

/// How soon a reliable writer repairs.
void settle_repair(noctule_node *node, fdds::DataWriterQos &qos) {
    const char *heartbeat = noctule_option(node, "heartbeat_ms", "3000");
    const char *response = noctule_option(node, "nack_response_us", "5000");
    auto &times = qos.reliable_writer_qos().times;
    times.heartbeatPeriod = milliseconds(static_cast<uint32_t>(atoi(heartbeat)));
    times.nackResponseDelay = eprosima::fastrtps::Duration_t(0, static_cast<uint32_t>(atoi(response)) * 1000u);
    noctule_setting(node, "heartbeat_ms", "%s", heartbeat);
    noctule_setting(node, "nack_response_us", "%s", response);
    const char *flow = noctule_option(node, "flow_bytes_per_s", "0");
    if (strcmp(flow, "0") != 0) {
        qos.publish_mode().kind = fdds::ASYNCHRONOUS_PUBLISH_MODE;
        qos.publish_mode().flow_controller_name = FLOW;
    }
    noctule_setting(node, "flow_bytes_per_s", "%s", flow);
}

/// How soon a reliable reader asks for what is missing.
void settle_requests(noctule_node *node, fdds::DataReaderQos &qos) {
    const char *response = noctule_option(node, "heartbeat_response_us", "5000");
    qos.reliable_reader_qos().times.heartbeatResponseDelay =
        eprosima::fastrtps::Duration_t(0, static_cast<uint32_t>(atoi(response)) * 1000u);
    noctule_setting(node, "heartbeat_response_us", "%s", response);
}

/// The part of the QoS that writers and readers have in common.
template <typename Qos> void settle(noctule_node *node, Qos &qos) {
    bool reliable = strcmp(noctule_option(node, "reliability", "reliable"), "best_effort") != 0;
    bool all = strcmp(noctule_option(node, "history", "keep_last"), "keep_all") == 0;
    qos.reliability().kind = reliable ? fdds::RELIABLE_RELIABILITY_QOS : fdds::BEST_EFFORT_RELIABILITY_QOS;
    qos.reliability().max_blocking_time = {1, 0};
    qos.durability().kind = fdds::VOLATILE_DURABILITY_QOS;
    qos.history().kind = all ? fdds::KEEP_ALL_HISTORY_QOS : fdds::KEEP_LAST_HISTORY_QOS;
    qos.history().depth = fast.depth;
    qos.resource_limits().max_instances = 1;
    qos.resource_limits().max_samples = qos.resource_limits().max_samples_per_instance = fast.depth;
    qos.resource_limits().allocated_samples = fast.depth;
    qos.endpoint().history_memory_policy = rtps::PREALLOCATED_MEMORY_MODE;
    uint32_t lifespan_ms = static_cast<uint32_t>(atoi(noctule_option(node, "lifespan_ms", "0")));
    if (lifespan_ms) qos.lifespan().duration = milliseconds(lifespan_ms);
    if (fast.lends) qos.data_sharing().on("");
    else qos.data_sharing().off();
}

fdds::Topic *topic_of(noctule_node *node, const char *name) {
    std::string full = std::string(node->session) + "/" + name;
    fdds::TypeSupport type(new Octets(static_cast<uint32_t>(node->payload_bytes)));
    type.register_type(fast.participant);
    return fast.participant->create_topic(full, type.get_type_name(), fdds::TOPIC_QOS_DEFAULT);
}

int open(noctule_node *node) {
    fast.lends = strcmp(noctule_option(node, "data_sharing", "0"), "1") == 0;
    if (fast.lends && strcmp(node->link, "shm") != 0)
        return noctule_fail(node, "option.data_sharing=1 needs link=shm");
    uint64_t depth = std::max<uint64_t>(2, std::min(node->window, MEMORY_BYTES / node->payload_bytes));
    fast.depth = static_cast<int32_t>(depth);
    if (create_participant(node) != 0) return -1;
    if (node->publish) {
        fdds::DataWriterQos qos = fdds::DATAWRITER_QOS_DEFAULT;
        settle(node, qos);
        settle_repair(node, qos);
        fdds::Publisher *publisher = fast.participant->create_publisher(fdds::PUBLISHER_QOS_DEFAULT);
        fast.writer = publisher->create_datawriter(topic_of(node, node->publish), qos);
        if (!fast.writer) return noctule_fail(node, "the writer could not be created");
    }
    if (node->subscribe) {
        fdds::DataReaderQos qos = fdds::DATAREADER_QOS_DEFAULT;
        settle(node, qos);
        settle_requests(node, qos);
        fdds::Subscriber *subscriber = fast.participant->create_subscriber(fdds::SUBSCRIBER_QOS_DEFAULT);
        fast.reader = subscriber->create_datareader(topic_of(node, node->subscribe), qos);
        if (!fast.reader) return noctule_fail(node, "the reader could not be created");
    }
    noctule_setting(node, "reliability", "%s", noctule_option(node, "reliability", "reliable"));
    noctule_setting(node, "history", "%s %d", noctule_option(node, "history", "keep_last"), fast.depth);
    noctule_setting(node, "lifespan_ms", "%s", noctule_option(node, "lifespan_ms", "infinite"));
    noctule_setting(node, "data_sharing", "%d", fast.lends);
    return 0;
}

int connect(noctule_node *node) {
    int64_t end_ns = noctule_now_ns() + NOCTULE_MATCH_TIMEOUT_NS;
    for (;;) {
        fdds::PublicationMatchedStatus readers;
        fdds::SubscriptionMatchedStatus writers;
        if (fast.writer) fast.writer->get_publication_matched_status(readers);
        if (fast.reader) fast.reader->get_subscription_matched_status(writers);
        bool heard = readers.current_count >= static_cast<int32_t>(node->readers);
        if (heard && (!fast.reader || writers.current_count >= 1)) return 0;
        if (noctule_now_ns() > end_ns)
            return noctule_fail(node, "discovery found %d of %d readers and %d writers in 10 s", readers.current_count,
                                static_cast<int>(node->readers), writers.current_count);
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, nullptr);
    }
}

int send(noctule_node *node, size_t length) {
    void *memory = node->message;
    (void)length;
    if (fast.lends && fast.writer->loan_sample(memory) != ReturnCode_t::RETCODE_OK)
        return noctule_fail(node, "loan_sample: no free sample; the readers did not keep up");
    noctule_fill(node, memory);
    if (fast.writer->write(memory)) return 0;
    return noctule_fail(node, "DataWriter::write failed: the reader did not keep up for 1 s");
}

int try_receive(noctule_node *node) {
    Loans samples;
    fdds::SampleInfoSeq information;
    auto result = fast.reader->take(samples, information, TAKE_AT_ONCE);
    if (result == ReturnCode_t::RETCODE_NO_DATA) return 0;
    if (result != ReturnCode_t::RETCODE_OK) return noctule_fail(node, "DataReader::take failed: %u", result());
    int delivered = 0;
    for (int32_t i = 0; i < samples.length(); i++) {
        if (!information[i].valid_data) continue;  // only news about the writer
        // Data-sharing: a writer that ran ahead of us by its whole history has written over the sample. It is lost.
        if (fast.lends && !fast.reader->is_sample_valid(&samples[i], &information[i])) continue;
        noctule_deliver(node, &samples[i], static_cast<size_t>(node->payload_bytes));
        delivered++;
    }
    fast.reader->return_loan(samples, information);
    return delivered;
}

int receive_blocking(noctule_node *node, int64_t timeout_ns) {
    eprosima::fastrtps::Duration_t timeout(static_cast<int32_t>(timeout_ns / 1000000000),
                                           static_cast<uint32_t>(timeout_ns % 1000000000));
    return fast.reader->wait_for_unread_message(timeout) ? try_receive(node) : 0;
}

void close(noctule_node *) {
    if (!fast.participant) return;
    fast.participant->delete_contained_entities();
    fdds::DomainParticipantFactory::get_instance()->delete_participant(fast.participant);
}

}  // namespace

int main(int argc, char **argv) {
    static noctule_peer peer;
    peer.name = "fastdds";
    peer.links = "udp,shm";
    peer.waits = "spin,block,hybrid";
    peer.modes = "round_trip,one_way,chain,fan_out";
    peer.max_payload_bytes = 16 << 20;
    peer.receives_in_thread = true;
    peer.version = version;
    peer.open = open;
    peer.connect = connect;
    peer.send_in_place = send;
    peer.try_receive = try_receive;
    peer.receive_blocking = receive_blocking;
    peer.close = close;
    return noctule_peer_main(argc, argv, &peer);
}
