// ROS 2 under test: rclcpp on any RMW implementation, one node per process, std_msgs/msg/UInt8MultiArray.
//
// The peer pays all that a robot's program pays: messages are typed, so that each is serialized and deserialized, and an
// executor calls the subscription's callback. Settings are ROS 2's and the implementations' own defaults, except that
// nodes have no services for parameters, no /rosout and no log file, whose traffic is not the message's.
//
// Options: rmw=NAME (RMW_IMPLEMENTATION; without it what ROS 2 would take); wake=executor|wait_set (a wait set of the
// node's own takes messages without a callback, into one message that is there already); reliability=reliable|best_effort;
// history=keep_last|keep_all (keep_last has the depth of the window).
//
// A link is not chosen in ROS 2: it is the implementation's. rmw_noctule uses shared memory on one host and UDP between
// hosts, Cyclone DDS UDP, Zenoh TCP; Fast DDS is made to use one of shared memory and UDP. Another link is refused.
//
// Zenoh's nodes would look for a router, a process of its own; here each listens and the publishers connect to their
// readers, as the lab names them. So that this can be said, all is created in `connect`.
#include "../harness/noctule_peer.h"

#include <exception>
#include <memory>
#include <string>

#include <rclcpp/rclcpp.hpp>
#include <rclcpp/version.h>
#include <rcpputils/find_library.hpp>
#include <rmw/rmw.h>
#include <std_msgs/msg/u_int8_multi_array.hpp>

namespace {

using Message = std_msgs::msg::UInt8MultiArray;

constexpr const char *IMPLEMENTATIONS[] = {"rmw_noctule", "rmw_cyclonedds_cpp", "rmw_fastrtps_cpp", "rmw_zenoh_cpp"};
constexpr uint32_t DOMAINS = 100;  // above, the ports of DDS reach those that the kernel gives to clients
constexpr int PORT_FIRST = 20000;
constexpr int PORTS = 12000;
constexpr timespec LOOK = {0, 1000000};

struct Ros {
    std::shared_ptr<rclcpp::Node> node;
    std::shared_ptr<rclcpp::Publisher<Message>> publisher;
    std::shared_ptr<rclcpp::Subscription<Message>> subscription;
    std::unique_ptr<rclcpp::executors::SingleThreadedExecutor> executor;
    std::unique_ptr<rclcpp::WaitSet> wait_set;
    Message out, in;
    int delivered = 0;
};

Ros robot;

const char *version() { return RCLCPP_VERSION_STR; }

bool is_there(const std::string &implementation) { return !rcpputils::find_library_path(implementation).empty(); }

// The implementations that would be loaded, for `hello`: the lab skips the others by name.
std::string offered() {
    std::string list;
    for (const char *name : IMPLEMENTATIONS)
        if (is_there(name)) list += std::string(list.empty() ? "" : ",") + name;
    const char *chosen = getenv("RMW_IMPLEMENTATION");
    if (chosen && *chosen && !np_listed(list.c_str(), chosen) && is_there(chosen))
        list += std::string(list.empty() ? "" : ",") + chosen;
    return list;
}

uint32_t hash_of(const std::string &text) {
    uint32_t hash = 2166136261u;
    for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return hash;
}

// The implementation's link between these nodes; nullptr: any, for one that is not known here.
const char *link_of(const std::string &implementation, const noctule_node *node, bool is_loopback) {
    if (implementation == "rmw_noctule") return is_loopback ? "shm" : "udp";
    if (implementation == "rmw_cyclonedds_cpp") return "udp";
    // Between hosts a scenario does not say by what: the lab takes UDP or TCP, whichever a peer offers first.
    if (implementation == "rmw_zenoh_cpp") return is_loopback ? "tcp" : node->link;
    if (implementation == "rmw_fastrtps_cpp") return strcmp(node->link, "shm") == 0 ? "shm" : "udp";
    return nullptr;
}

// The implementation reads the names of interface and partners from the environment, outside of rclcpp.
void set_environment(noctule_node *node, const std::string &implementation, bool is_loopback) {
    std::string domain = std::to_string(1 + hash_of(node->session) % DOMAINS), bind = node->bind_address;
    setenv("ROS_DOMAIN_ID", domain.c_str(), 1);
    setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", is_loopback ? "LOCALHOST" : "SUBNET", 1);
    unsetenv("ROS_LOCALHOST_ONLY");
    unsetenv("ROS_STATIC_PEERS");
    noctule_setting(node, "domain", "%s", domain.c_str());
    if (implementation == "rmw_cyclonedds_cpp") {
        std::string interface = "<CycloneDDS><Domain><General><Interfaces><NetworkInterface address=\"" + bind +
                                "\"/></Interfaces></General></Domain></CycloneDDS>";
        setenv("CYCLONEDDS_URI", interface.c_str(), 0);  // the user's own stands
    } else if (implementation == "rmw_fastrtps_cpp") {
        const char *transport = strcmp(node->link, "shm") == 0 ? "SHM" : "UDPv4";
        setenv("FASTDDS_BUILTIN_TRANSPORTS", transport, 1);
        noctule_setting(node, "transports", "%s", transport);
    } else if (implementation == "rmw_zenoh_cpp") {
        noctule_setting(node, "transport", "TCP");
        uint32_t port = PORT_FIRST + hash_of(node->session + std::to_string(node->node)) % PORTS;
        snprintf(node->address, sizeof node->address, "tcp/%s:%u", node->bind_address, port);
    }
}

bool is_one_of(noctule_node *node, const char *option, const char *value, const char *first, const char *second) {
    if (strcmp(value, first) == 0 || strcmp(value, second) == 0) return true;
    noctule_fail(node, "option.%s=%.40s is neither %s nor %s", option, value, first, second);
    return false;
}

int open(noctule_node *node) {
    bool is_loopback = strncmp(node->bind_address, "127.", 4) == 0;
    const char *wanted = noctule_option(node, "rmw", nullptr);
    if (wanted && !is_there(wanted))
        return noctule_fail(node, "%.60s is not set up: source the setup.bash of a workspace that has it", wanted);
    if (wanted) setenv("RMW_IMPLEMENTATION", wanted, 1);
    const char *loaded = rmw_get_implementation_identifier();
    if (!loaded) return noctule_fail(node, "ROS 2 cannot load %.60s: see what it wrote above", wanted ? wanted : "its RMW");
    const char *link = link_of(loaded, node, is_loopback);
    if (link && strcmp(link, node->link) != 0)
        return noctule_fail(node, "%s uses %s here, not %s: ask for link = \"%s\"", loaded, link, node->link, link);
    const char *reliability = noctule_option(node, "reliability", "reliable");
    const char *history = noctule_option(node, "history", "keep_last"), *wake = noctule_option(node, "wake", "executor");
    if (!is_one_of(node, "reliability", reliability, "reliable", "best_effort") ||
        !is_one_of(node, "history", history, "keep_last", "keep_all") ||
        !is_one_of(node, "wake", wake, "executor", "wait_set"))
        return -1;
    set_environment(node, loaded, is_loopback);
    noctule_setting(node, "rmw", "%s", loaded);
    noctule_setting(node, "type", "std_msgs/msg/UInt8MultiArray");
    noctule_setting(node, "reliability", "%s", reliability);
    noctule_setting(node, "history", "%s %d", history, static_cast<int>(node->window));
    noctule_setting(node, "wake", "%s", wake);
    return 0;
}

// Zenoh: this node's own address, and whom it connects to. An echo's partner, the initiator, connects to it.
void set_zenoh_endpoints(const noctule_node *node) {
    std::string readers = node->role == NOCTULE_ECHO ? "" : node->reader_addresses, quoted;
    for (size_t at = 0; at < readers.size();) {
        size_t end = std::min(readers.find(',', at), readers.size());
        quoted += std::string(quoted.empty() ? "\"" : ",\"") + readers.substr(at, end - at) + "\"";
        at = end + 1;
    }
    std::string config = std::string("listen/endpoints=[\"") + node->address + "\"];connect/endpoints=[" + quoted +
                         "];scouting/multicast/enabled=false";
    setenv("ZENOH_CONFIG_OVERRIDE", config.c_str(), 1);
    setenv("ZENOH_ROUTER_CHECK_ATTEMPTS", "-1", 1);
}

rclcpp::QoS qos_of(const noctule_node *node) {
    rclcpp::QoS qos(static_cast<size_t>(node->window));
    if (strcmp(noctule_option(node, "history", "keep_last"), "keep_all") == 0) qos.keep_all();
    if (strcmp(noctule_option(node, "reliability", "reliable"), "best_effort") == 0) qos.best_effort();
    return qos;
}

void create(noctule_node *node) {
    const char *arguments[] = {"peer", "--ros-args", "--disable-external-lib-logs", "--disable-rosout-logs"};
    rclcpp::init(4, arguments, rclcpp::InitOptions(), rclcpp::SignalHandlerOptions::None);
    auto options = rclcpp::NodeOptions().start_parameter_services(false).start_parameter_event_publisher(false);
    options.enable_rosout(false).use_clock_thread(false);
    std::string session = node->session;
    robot.node = std::make_shared<rclcpp::Node>(session + "_" + std::to_string(node->node), options);
    robot.out.data.resize(static_cast<size_t>(node->payload_bytes));
    if (node->publish) robot.publisher = robot.node->create_publisher<Message>(session + "/" + node->publish, qos_of(node));
    if (!node->subscribe) return;
    robot.subscription = robot.node->create_subscription<Message>(
        session + "/" + node->subscribe, qos_of(node), [node](const Message &message) {
            noctule_deliver(node, message.data.data(), message.data.size());
            robot.delivered++;
        });
    if (strcmp(noctule_option(node, "wake", "executor"), "executor") == 0) {
        robot.executor = std::make_unique<rclcpp::executors::SingleThreadedExecutor>();
        robot.executor->add_node(robot.node);
    } else {
        robot.wait_set = std::make_unique<rclcpp::WaitSet>();
        robot.wait_set->add_subscription(robot.subscription);
    }
}

// rclcpp speaks of faults by exceptions: none may pass through the harness, which is C.
template <typename Work>
int guarded(noctule_node *node, const char *call, Work work) {
    try {
        return work();
    } catch (const std::exception &fault) {
        return noctule_fail(node, "%s: %s", call, fault.what());
    }
}

int connect(noctule_node *node) {
    int64_t end_ns = noctule_now_ns() + NOCTULE_MATCH_TIMEOUT_NS;
    return guarded(node, "connect", [&] {
        if (node->address[0]) set_zenoh_endpoints(node);
        create(node);
        for (;;) {
            size_t readers = node->publish ? robot.publisher->get_subscription_count() : 0;
            size_t writers = node->subscribe ? robot.subscription->get_publisher_count() : 1;
            if (readers >= node->readers && writers > 0) return 0;
            if (noctule_now_ns() > end_ns)
                return noctule_fail(node, "discovery found %d of %d readers and %d writers in 10 s",
                                    static_cast<int>(readers), static_cast<int>(node->readers),
                                    node->subscribe ? static_cast<int>(writers) : 0);
            nanosleep(&LOOK, nullptr);
        }
    });
}

int send(noctule_node *node, size_t) {
    return guarded(node, "publish", [&] {
        noctule_fill(node, robot.out.data.data());
        robot.publisher->publish(robot.out);
        return 0;
    });
}

int try_receive(noctule_node *node) {
    return guarded(node, "take", [&] {
        rclcpp::MessageInfo information;
        if (!robot.subscription->take(robot.in, information)) return 0;
        noctule_deliver(node, robot.in.data.data(), robot.in.data.size());
        return 1;
    });
}

int receive_blocking(noctule_node *node, int64_t timeout_ns) {
    return guarded(node, "wait", [&] {
        std::chrono::nanoseconds timeout(timeout_ns);
        if (robot.wait_set)
            return robot.wait_set->wait(timeout).kind() == rclcpp::WaitResultKind::Ready ? try_receive(node) : 0;
        robot.delivered = 0;
        robot.executor->spin_once(timeout);
        return robot.delivered;
    });
}

void close(noctule_node *node) {
    guarded(node, "close", [] {
        robot.wait_set.reset();
        robot.executor.reset();
        robot.subscription.reset();
        robot.publisher.reset();
        robot.node.reset();
        if (rclcpp::ok()) rclcpp::shutdown();
        return 0;
    });
}

}  // namespace

int main(int argc, char **argv) {
    static noctule_peer peer;
    static std::string options = offered();
    if (options.empty()) {
        fprintf(stderr, "no RMW implementation is in LD_LIBRARY_PATH: source ROS 2's setup.bash\n");
        return 2;
    }
    options = "option.rmw=" + options;
    peer.name = "ros2";
    peer.links = "udp,shm,tcp";
    peer.waits = "spin,block,hybrid";
    peer.modes = "round_trip,one_way,chain,fan_out";
    peer.options = options.c_str();
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
