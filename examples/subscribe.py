"""Prints the samples of the topic `hello`, and how old each was when it came."""

import noctule

with noctule.Node("listener") as node, node.subscriber("hello") as subscriber:
    for sample in subscriber:
        if age := sample.age:
            print(f"{bytes(sample).decode()}: {age.ns} ns old")
