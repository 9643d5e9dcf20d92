"""Publishes each line of standard input on the topic `hello`."""

import sys
import noctule

with noctule.Node("talker") as node, node.publisher("hello") as publisher:
    for line in sys.stdin:
        publisher.publish(line.rstrip("\n").encode())
