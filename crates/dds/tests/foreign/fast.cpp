// A foreign program: Fast DDS, one topic of std_msgs/msg/String; its arguments say what it does.
//
//   fast write DOMAIN TOPIC reliable|best_effort volatile|transient_local COUNT TEXT
//   fast read  DOMAIN TOPIC reliable|best_effort volatile|transient_local COUNT
//
// As cyclone.c, but for ping. The type is written by hand: what eProsima's generator would make of ros_string.idl. Only
// the loopback interface is used.
#include <cstring>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <fastdds/dds/log/StdoutErrConsumer.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

namespace fdds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

namespace {

constexpr uint32_t MOST = 1024;
constexpr auto TIMEOUT = std::chrono::seconds(30);

/// `string data`, little-endian: a length that counts the final zero, and the characters.
class String : public fdds::TopicDataType {
public:
    String() {
        m_typeSize = MOST + 8;
        m_isGetKeyDefined = false;
        setName("std_msgs::msg::dds_::String_");
        auto_fill_type_object(false);
        auto_fill_type_information(false);
    }
    bool serialize(void *data, rtps::SerializedPayload_t *payload) override {
        const std::string &text = *static_cast<std::string *>(data);
        const unsigned char header[4] = {0, CDR_LE, 0, 0};
        uint32_t length = static_cast<uint32_t>(text.size() + 1);
        if (payload->max_size < length + 8) return false;
        memcpy(payload->data, header, 4);
        memcpy(payload->data + 4, &length, 4);
        memcpy(payload->data + 8, text.c_str(), length);
        payload->encapsulation = CDR_LE;
        payload->length = length + 8;
        return true;
    }
    bool deserialize(rtps::SerializedPayload_t *payload, void *data) override {
        uint32_t length = 0;
        if (payload->length < 9) return false;
        memcpy(&length, payload->data + 4, 4);
        if (length == 0 || length > payload->length - 8) return false;
        static_cast<std::string *>(data)->assign(reinterpret_cast<char *>(payload->data + 8), length - 1);
        return true;
    }
    std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
        return [data] { return static_cast<uint32_t>(static_cast<std::string *>(data)->size() + 9); };
    }
    void *createData() override { return new std::string; }
    void deleteData(void *data) override { delete static_cast<std::string *>(data); }
    bool getKey(void *, rtps::InstanceHandle_t *, bool) override { return false; }
};

[[noreturn]] void fail(const char *what) {
    std::cerr << what << "\n";
    exit(1);
}

/// Fast DDS writes its own errors to standard output by default; that carries samples here.
void log_to_stderr() {
    std::unique_ptr<fdds::StdoutErrConsumer> consumer(new fdds::StdoutErrConsumer);
    consumer->stderr_threshold(fdds::Log::Kind::Info);
    fdds::Log::ClearConsumers();
    fdds::Log::RegisterConsumer(std::move(consumer));
}

fdds::DomainParticipant *participant(uint32_t domain) {
    fdds::DomainParticipantQos qos;
    auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
    udp->interfaceWhiteList.push_back("127.0.0.1");
    udp->maxInitialPeersRange = 40;
    qos.transport().use_builtin_transports = false;
    qos.transport().user_transports.push_back(udp);
    rtps::Locator_t local;
    rtps::IPLocator::setIPv4(local, "127.0.0.1");
    qos.wire_protocol().builtin.initialPeersList.push_back(local);
    return fdds::DomainParticipantFactory::get_instance()->create_participant(domain, qos);
}

template <class Qos>
void set(Qos &qos, bool reliable, bool keeps) {
    qos.reliability().kind = reliable ? fdds::RELIABLE_RELIABILITY_QOS : fdds::BEST_EFFORT_RELIABILITY_QOS;
    qos.durability().kind = keeps ? fdds::TRANSIENT_LOCAL_DURABILITY_QOS : fdds::VOLATILE_DURABILITY_QOS;
    qos.history().kind = fdds::KEEP_LAST_HISTORY_QOS;
    qos.history().depth = 100;
}

template <class Ready>
void wait_for(Ready ready) {
    auto end = std::chrono::steady_clock::now() + TIMEOUT;
    while (!ready()) {
        if (std::chrono::steady_clock::now() > end) fail("nothing came in 30 s");
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

void write_all(fdds::DomainParticipant *part, fdds::Topic *topic, bool reliable, bool keeps, int count,
               const std::string &text) {
    fdds::DataWriterQos qos;
    set(qos, reliable, keeps);
    fdds::DataWriter *writer = part->create_publisher(fdds::PUBLISHER_QOS_DEFAULT)->create_datawriter(topic, qos);
    if (!writer) fail("no writer");
    fdds::PublicationMatchedStatus matched;
    if (!keeps) wait_for([&] { return writer->get_publication_matched_status(matched), matched.current_count > 0; });
    for (int i = 0; i < count; i++) {
        std::string sample = text + " " + std::to_string(i);
        if (!writer->write(&sample)) fail("not written");
    }
    std::cout << "written" << std::endl;
    for (std::string line; std::getline(std::cin, line);)
        if (!writer->write(&line)) fail("not written");
}

void read_all(fdds::DomainParticipant *part, fdds::Topic *topic, bool reliable, bool keeps, int count) {
    fdds::DataReaderQos qos;
    set(qos, reliable, keeps);
    fdds::DataReader *reader = part->create_subscriber(fdds::SUBSCRIBER_QOS_DEFAULT)->create_datareader(topic, qos);
    if (!reader) fail("no reader");
    fdds::SubscriptionMatchedStatus matched;
    wait_for([&] { return reader->get_subscription_matched_status(matched), matched.current_count > 0; });
    std::cout << "matched" << std::endl;
    for (int got = 0; got < count;) {
        if (!reader->wait_for_unread_message({30, 0})) fail("nothing came in 30 s");
        std::string sample;
        fdds::SampleInfo info;
        while (reader->take_next_sample(&sample, &info) == eprosima::fastrtps::types::ReturnCode_t::RETCODE_OK) {
            if (!info.valid_data) continue;
            std::cout << sample << std::endl;
            got++;
        }
    }
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 7) fail("usage: see the first lines of fast.cpp");
    log_to_stderr();
    bool reliable = !strcmp(argv[4], "reliable"), keeps = !strcmp(argv[5], "transient_local");
    fdds::DomainParticipant *part = participant(static_cast<uint32_t>(atoi(argv[2])));
    if (!part) fail("no participant");
    fdds::TypeSupport type(new String);
    type.register_type(part);
    fdds::Topic *topic = part->create_topic(argv[3], type.get_type_name(), fdds::TOPIC_QOS_DEFAULT);
    if (!strcmp(argv[1], "write")) write_all(part, topic, reliable, keeps, atoi(argv[6]), argc > 7 ? argv[7] : "");
    else read_all(part, topic, reliable, keeps, atoi(argv[6]));
    part->delete_contained_entities();
    fdds::DomainParticipantFactory::get_instance()->delete_participant(part);
}
