"""Ends of topics as a ROS 2 program has them, for table.py; what came is printed as one JSON object."""

import array
import json
import resource
import statistics
import sys
import time

import rclpy
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.action import ActionServer
from rclpy.action.server import ServerGoalHandle
from composition_interfaces.srv import LoadNode
from std_msgs.msg import Int64, String, UInt8MultiArray
from test_msgs.action import Fibonacci
from test_msgs.srv import BasicTypes

RELIABLE = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)


def processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def spin(node: Node, seconds: float) -> float:
    """Processor time meanwhile, in milliseconds a second."""
    begin, before_s = time.monotonic(), processor_s()
    while rclpy.ok() and time.monotonic() < begin + seconds:
        rclpy.spin_once(node, timeout_sec=0.1)
    return 1e3 * (processor_s() - before_s) / max(time.monotonic() - begin, 1e-9)


def publish_images(node: Node, topic: str, hz: float, size: int, seconds: float) -> None:
    """Bytes of the length of a picture, of which the first eight are the time."""
    publisher = node.create_publisher(UInt8MultiArray, topic, RELIABLE)
    rest = bytes(size - 8)

    def tick() -> None:
        data = array.array("B", time.time_ns().to_bytes(8, "little") + rest)
        publisher.publish(UInt8MultiArray(data=data))

    node.create_timer(1 / hz, tick)
    print(json.dumps({"processor_ms_s": round(spin(node, seconds), 1)}), flush=True)


def publish_numbers(node: Node, topic: str, hz: float, seconds: float) -> None:
    publisher = node.create_publisher(Int64, topic, RELIABLE)
    node.create_timer(1 / hz, lambda: publisher.publish(Int64(data=time.time_ns())))
    spin(node, seconds)


def report(ages_ms: list[float], first: float, last: float, processor_ms_s: float) -> None:
    ages_ms.sort()
    rate = (len(ages_ms) - 1) / (last - first) if last > first else 0.0
    p99 = ages_ms[int(len(ages_ms) * 0.99)] if ages_ms else None
    p50 = statistics.median(ages_ms) if ages_ms else None
    show = {"samples": len(ages_ms), "hz": round(rate, 1), "processor_ms_s": round(processor_ms_s, 1)}
    if p50 is not None and p99 is not None:
        show |= {"p50_ms": round(p50, 3), "p99_ms": round(p99, 3)}
    print(json.dumps(show), flush=True)


def read(node: Node, topic: str, kind: str, seconds: float) -> None:
    ages_ms: list[float] = []
    times: list[float] = []

    def came(message: UInt8MultiArray | Int64) -> None:
        now_ns = time.time_ns()
        then_ns = (
            message.data
            if isinstance(message, Int64)
            else int.from_bytes(bytes(message.data[:8]), "little")
        )
        ages_ms.append((now_ns - then_ns) / 1e6)
        times.append(time.monotonic())

    node.create_subscription(UInt8MultiArray if kind == "image" else Int64, topic, came, RELIABLE)
    processor_ms_s = spin(node, seconds)
    report(ages_ms, *([times[0], times[-1]] if times else [0.0, 0.0]), processor_ms_s)


def latch(node: Node, topic: str, text: str, seconds: float) -> None:
    publisher = node.create_publisher(String, topic, LATCHED)
    publisher.publish(String(data=text))
    print("published", flush=True)
    spin(node, seconds)


def log(node: Node, text: str, seconds: float) -> None:
    node.get_logger().info(text)
    spin(node, seconds)


def hear(node: Node, topic: str, latched: str, seconds: float) -> None:
    """Texts that came within the time, in order."""
    texts: list[str] = []
    quality = LATCHED if latched == "latched" else RELIABLE
    node.create_subscription(String, topic, lambda message: texts.append(message.data), quality)
    spin(node, seconds)
    print(json.dumps(texts), flush=True)


def say(node: Node, topic: str, prefix: str, hz: float, seconds: float) -> None:
    publisher = node.create_publisher(String, topic, RELIABLE)
    count = iter(range(1, 1_000_000))
    node.create_timer(1 / hz, lambda: publisher.publish(String(data=f"{prefix} {next(count)}")))
    spin(node, seconds)


def many(node: Node, topics: int, seconds: float) -> None:
    ends = [node.create_publisher(String, f"/many/t{number:04}", RELIABLE) for number in range(topics)]
    spin(node, seconds)
    del ends


def serve(node: Node, service: str, seconds: float) -> None:
    """A service that doubles a number."""

    def double(request: BasicTypes.Request, response: BasicTypes.Response) -> BasicTypes.Response:
        response.int64_value = 2 * request.int64_value
        return response

    node.create_service(BasicTypes, service, double)
    spin(node, seconds)


def count_up(node: Node, action: str, seconds: float) -> None:
    """An action that computes Fibonacci numbers, with each as feedback."""

    def execute(goal: ServerGoalHandle) -> Fibonacci.Result:
        sequence = [0, 1]
        for _ in range(goal.request.order - 1):
            sequence.append(sequence[-1] + sequence[-2])
            goal.publish_feedback(Fibonacci.Feedback(sequence=sequence))
        goal.succeed()
        return Fibonacci.Result(sequence=sequence)

    server = ActionServer(node, Fibonacci, action, execute)
    spin(node, seconds)
    server.destroy()


def load(node: Node, container: str, count: int) -> None:
    """Talkers and listeners in turn into a container of components."""
    client = node.create_client(LoadNode, f"{container}/_container/load_node")
    loaded = 0
    if client.wait_for_service(timeout_sec=20.0):
        for number in range(count):
            plugin = "Listener" if number % 2 else "Talker"
            request = LoadNode.Request(package_name="composition", plugin_name=f"composition::{plugin}")
            request.node_name = f"{plugin.lower()}_{number}"
            done = client.call_async(request)
            rclpy.spin_until_future_complete(node, done, timeout_sec=20.0)
            answer = done.result()
            loaded += answer is not None and answer.success
    print(json.dumps({"loaded": loaded}), flush=True)


def hold(node: Node, parameter: str, seconds: float) -> None:
    """A node with a parameter."""
    node.declare_parameter(parameter, 0.5)
    spin(node, seconds)


def main() -> None:
    role, *arguments = sys.argv[1:]
    rclpy.init()
    node = rclpy.create_node(f"{role}_{arguments[0].strip('/').replace('/', '_')}"[:60])
    roles = {
        "images": lambda: publish_images(
            node, arguments[0], float(arguments[1]), int(arguments[2]), float(arguments[3])
        ),
        "numbers": lambda: publish_numbers(node, arguments[0], float(arguments[1]), float(arguments[2])),
        "read": lambda: read(node, arguments[0], arguments[1], float(arguments[2])),
        "latch": lambda: latch(node, arguments[0], arguments[1], float(arguments[2])),
        "log": lambda: log(node, arguments[1], float(arguments[2])),
        "hear": lambda: hear(node, arguments[0], arguments[1], float(arguments[2])),
        "say": lambda: say(node, arguments[0], arguments[1], float(arguments[2]), float(arguments[3])),
        "serve": lambda: serve(node, arguments[0], float(arguments[1])),
        "count_up": lambda: count_up(node, arguments[0], float(arguments[1])),
        "hold": lambda: hold(node, arguments[0], float(arguments[1])),
        "load": lambda: load(node, arguments[0], int(arguments[1])),
        "many": lambda: many(node, int(arguments[0]), float(arguments[1])),
    }
    try:
        roles[role]()
    except (KeyboardInterrupt, rclpy.executors.ExternalShutdownException):
        pass


if __name__ == "__main__":
    main()
