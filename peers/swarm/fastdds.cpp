// A drone's radio by Fast DDS, multicast, best effort: hexadecimal states from standard input, and those heard to standard output.
//
// Needs Debian's libfastrtps-dev and libfastcdr-dev:
//   g++ -std=c++17 -O2 -Wall -Wextra peers/swarm/fastdds.cpp -lfastrtps -lfastcdr -o target/swarm_fastdds

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

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
#include <fastrtps/utils/IPLocator.h>

namespace fdds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

namespace {

constexpr uint32_t STATE_BYTES = 80;
constexpr int32_t DEPTH = 64;
constexpr const char *GROUP = "239.255.0.3";  // administratively scoped, RFC 2365
constexpr uint32_t PORT = 17900;

struct State { unsigned char bytes[STATE_BYTES]; };

/// `octet bytes[80]`: the bytes of docs/spec/swarm-state.md as they are, without a field that DDS could know. Not generated,
/// so that every middleware carries the same 80 bytes, and those that know no types do, too.
class StateType : public fdds::TopicDataType {
public:
    StateType() {
        m_typeSize = STATE_BYTES + rtps::SerializedPayload_t::representation_header_size;
        m_isGetKeyDefined = false;
        setName("swarm::State");
        auto_fill_type_object(false);
        auto_fill_type_information(false);
    }

    bool serialize(void *data, rtps::SerializedPayload_t *payload) override {
        static const unsigned char header[4] = {0, CDR_LE, 0, 0};
        if (payload->max_size < m_typeSize) return false;
        memcpy(payload->data, header, sizeof header);
        memcpy(payload->data + sizeof header, data, STATE_BYTES);
        payload->encapsulation = CDR_LE;
        payload->length = m_typeSize;
        return true;
    }

    bool deserialize(rtps::SerializedPayload_t *payload, void *data) override {
        if (payload->length != m_typeSize) return false;
        memcpy(data, payload->data + 4, STATE_BYTES);
        return true;
    }

    std::function<uint32_t()> getSerializedSizeProvider(void *) override {
        return [this] { return m_typeSize; };
    }
    void *createData() override { return new State; }
    void deleteData(void *data) override { delete static_cast<State *>(data); }
    bool getKey(void *, rtps::InstanceHandle_t *, bool) override { return false; }
    bool is_bounded() const override { return true; }
    bool is_plain() const override { return true; }
};

fdds::DomainParticipant *participant() {
    fdds::DomainParticipantQos qos;
    qos.transport().use_builtin_transports = false;
    // No list of interfaces: with one, a group's port is bound to the interface's own address, where no group is heard.
    qos.transport().user_transports.push_back(
        std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>());
    rtps::Locator_t group;
    rtps::IPLocator::setIPv4(group, GROUP);
    group.port = PORT;
    qos.wire_protocol().default_multicast_locator_list.push_back(group);
    return fdds::DomainParticipantFactory::get_instance()->create_participant(0, qos);
}

template <typename Qos> Qos best_effort(Qos qos, int32_t depth) {
    qos.reliability().kind = fdds::BEST_EFFORT_RELIABILITY_QOS;
    qos.durability().kind = fdds::VOLATILE_DURABILITY_QOS;
    qos.history().kind = fdds::KEEP_LAST_HISTORY_QOS;
    qos.history().depth = depth;
    qos.data_sharing().off();
    return qos;
}

void hear(fdds::DataReader *reader, rtps::InstanceHandle_t own) {
    static const char DIGITS[] = "0123456789abcdef";
    State state;
    fdds::SampleInfo info;
    for (;;) {
        reader->wait_for_unread_message({1, 0});
        bool any = false;
        while (reader->take_next_sample(&state, &info) == ReturnCode_t::RETCODE_OK) {
            if (!info.valid_data || info.publication_handle == own) continue;
            std::string line;
            for (unsigned char byte : state.bytes) line += {DIGITS[byte >> 4], DIGITS[byte & 15]};
            puts(line.c_str());
            any = true;
        }
        if (any) fflush(stdout);
    }
}

bool read_state(const std::string &line, State *state) {
    if (line.size() != 2 * STATE_BYTES) return false;
    for (uint32_t i = 0; i < STATE_BYTES; i++)
        state->bytes[i] = static_cast<unsigned char>(strtoul(line.substr(2 * i, 2).c_str(), nullptr, 16));
    return true;
}

}  // namespace

int main() {
    fdds::DomainParticipant *node = participant();
    if (!node) return fprintf(stderr, "no Fast DDS participant\n"), 1;
    fdds::TypeSupport type(new StateType);
    type.register_type(node);
    fdds::Topic *topic = node->create_topic("swarm_state", type.get_type_name(), fdds::TOPIC_QOS_DEFAULT);
    fdds::DataWriter *writer = node->create_publisher(fdds::PUBLISHER_QOS_DEFAULT)
                                   ->create_datawriter(topic, best_effort(fdds::DATAWRITER_QOS_DEFAULT, 1));
    fdds::DataReader *reader = node->create_subscriber(fdds::SUBSCRIBER_QOS_DEFAULT)
                                   ->create_datareader(topic, best_effort(fdds::DATAREADER_QOS_DEFAULT, DEPTH));
    if (!writer || !reader) return fprintf(stderr, "Fast DDS made no writer or no reader\n"), 1;
    std::thread(hear, reader, writer->get_instance_handle()).detach();
    std::string line;
    State state;
    while (std::getline(std::cin, line))
        if (read_state(line, &state)) writer->write(&state);
    _Exit(0);
}
