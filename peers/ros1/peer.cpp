// ROS 1 (Noetic) under test: roscpp of Debian, TCPROS, one topic per hop.
//
// A master is a process of its own that node 1 starts on its bind_address, on a port made from the session; it introduces
// nodes to each other and carries no message. Node 0 is handed its address; further nodes look for it on their own
// bind_address, so that a chain or a fan-out needs nodes that share one.
//
// Messages are std_msgs/UInt8MultiArray, written by roscpp's own serializer and read back into a vector: two copies that
// a robot's program pays, too. Readers ask for TCP_NODELAY (TransportHints), queues are as deep as the window; a full one drops the
// oldest. Threads of roscpp write and read the sockets; the node's own thread takes messages from a callback queue.
#include "../harness/noctule_peer.h"

#include <memory>
#include <string>
#include <sys/wait.h>

#include <ros/callback_queue.h>
#include <ros/ros.h>
#include <std_msgs/UInt8MultiArray.h>

namespace {

constexpr int PORT_FIRST = 20000;
constexpr int PORTS = 12000;  // below the ports that the kernel gives to clients
constexpr timespec LOOK = {0, 5000000};
// The same master that `rosmaster` starts, without its log files.
constexpr const char *MASTER =
    "import signal, sys; from rosmaster.master import Master; Master(int(sys.argv[1]), 3).start(); signal.pause()";

struct Ros {
    noctule_node *node = nullptr;
    std::unique_ptr<ros::NodeHandle> handle;
    ros::CallbackQueue queue;
    ros::Publisher publisher;
    ros::Subscriber subscriber;
    std_msgs::UInt8MultiArray message;
    pid_t master = 0;
    int port = 0, delivered = 0;
};

Ros robot;

const char *version() {  // of the headers: roscpp offers none at run time
    static std::string text = std::to_string(ROS_VERSION_MAJOR) + "." + std::to_string(ROS_VERSION_MINOR) + "." +
                              std::to_string(ROS_VERSION_PATCH);
    return text.c_str();
}

[[noreturn]] void become_master(const noctule_node *node, pid_t parent) {
    cpu_set_t all;
    std::string port = std::to_string(robot.port);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126);
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
    setenv("ROS_IP", node->bind_address, 1);
    // Debian's python3, whatever PATH says: the module is there. It finds its library by the name it is called.
    execl("/usr/bin/python3", "/usr/bin/python3", "-c", MASTER, port.c_str(), nullptr);
    _exit(127);
}

int open(noctule_node *node) {
    uint32_t hash = 2166136261u;
    for (const char *c = node->session; *c; c++) hash = (hash ^ static_cast<unsigned char>(*c)) * 16777619u;
    robot.port = PORT_FIRST + static_cast<int>(hash % PORTS);
    snprintf(node->address, sizeof node->address, "%s:%d", node->bind_address, robot.port);
    noctule_setting(node, "queue_messages", "%d", static_cast<int>(node->window));
    noctule_setting(node, "transport", "TCPROS");
    noctule_setting(node, "tcp_nodelay", "1");
    noctule_setting(node, "type", "std_msgs/UInt8MultiArray");
    pid_t parent = getpid();
    if (node->node == 1 && (robot.master = fork()) == 0) become_master(node, parent);
    return robot.master >= 0 ? 0 : noctule_fail(node, "no process for the master: %s", strerror(errno));
}

bool is_over(noctule_node *node, int64_t end_ns, const char *missing) {
    int status = 0;
    if (robot.master > 0 && waitpid(robot.master, &status, WNOHANG) == robot.master) {
        robot.master = 0;
        noctule_fail(node, "the master ended with status %d: is python3-rosmaster installed, is its port free?",
                     WIFEXITED(status) ? WEXITSTATUS(status) : status);
        return true;
    }
    nanosleep(&LOOK, nullptr);
    if (noctule_now_ns() < end_ns) return false;
    noctule_fail(node, "10 s without %s", missing);
    return true;
}

void on_message(const std_msgs::UInt8MultiArray::ConstPtr &message) {
    noctule_deliver(robot.node, message->data.data(), message->data.size());
    robot.delivered++;
}

void start_ros(noctule_node *node, const std::string &master) {
    ros::M_string remappings = {{"__master", "http://" + master}, {"__ip", node->bind_address}};
    setenv("ROS_LOG_DIR", "/tmp", 1);  // roscpp would make a folder; nothing is written without rosout
    std::string name = std::string(node->session) + "_" + std::to_string(node->node);
    ros::init(remappings, name, ros::init_options::NoSigintHandler | ros::init_options::NoRosout);
}

int connect(noctule_node *node) {
    int64_t end_ns = noctule_now_ns() + NOCTULE_MATCH_TIMEOUT_NS;
    robot.node = node;
    std::string readers = node->reader_addresses;
    start_ros(node, node->node == 0 ? readers.substr(0, readers.find(',')) : node->address);
    while (!ros::master::check())
        if (is_over(node, end_ns, "a master: nodes after the second need its address as theirs")) return -1;
    robot.handle = std::make_unique<ros::NodeHandle>();
    robot.handle->setCallbackQueue(&robot.queue);
    auto depth = static_cast<uint32_t>(node->window);
    std::string prefix = std::string("/") + node->session + "/";
    if (node->publish) robot.publisher = robot.handle->advertise<std_msgs::UInt8MultiArray>(prefix + node->publish, depth);
    if (node->subscribe)
        robot.subscriber = robot.handle->subscribe(prefix + node->subscribe, depth, on_message,
                                                   ros::TransportHints().tcpNoDelay());
    while ((node->publish && robot.publisher.getNumSubscribers() < node->readers) ||
           (node->subscribe && robot.subscriber.getNumPublishers() == 0))
        if (is_over(node, end_ns, "all partners")) return -1;
    robot.message.data.resize(static_cast<size_t>(node->payload_bytes));
    return 0;
}

int send(noctule_node *node, size_t) {
    noctule_fill(node, robot.message.data.data());
    robot.publisher.publish(robot.message);
    return 0;
}

int receive_blocking(noctule_node *, int64_t timeout_ns) {
    robot.delivered = 0;
    robot.queue.callOne(ros::WallDuration(static_cast<double>(timeout_ns) * 1e-9));
    return robot.delivered;
}

int try_receive(noctule_node *node) { return receive_blocking(node, 0); }

void close(noctule_node *) {
    robot.subscriber.shutdown();
    robot.publisher.shutdown();
    robot.handle.reset();
    if (ros::isInitialized()) ros::shutdown();
    if (robot.master > 0) kill(robot.master, SIGKILL), waitpid(robot.master, nullptr, 0);
}

}  // namespace

int main(int argc, char **argv) {
    static noctule_peer peer;
    peer.name = "ros1";
    peer.links = "tcp";
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
