"""A drone's radio by Zenoh, peer to peer, best effort: hexadecimal states from standard input, and those heard to standard output.

Needs PyPI's eclipse-zenoh.
"""

import argparse
import json
import sys

# This file has the package's name: its own folder must not be searched.
sys.path.pop(0)
import zenoh  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--number", required=True)
    arguments = parser.parse_known_args()[0]
    config = zenoh.Config()
    settings = {
        "mode": "peer",
        "listen/endpoints": [f"udp/{arguments.address}:7447"],
        "scouting/multicast/interface": arguments.address,
    }
    for key, value in settings.items():
        config.insert_json5(key, json.dumps(value))
    with zenoh.open(config) as session:
        quality = {
            "reliability": zenoh.Reliability.BEST_EFFORT,
            "congestion_control": zenoh.CongestionControl.DROP,
            "express": True,
        }
        publisher = session.declare_publisher(f"swarm/state/{arguments.number}", **quality)
        own = f"swarm/state/{arguments.number}"

        def hear(sample):
            if str(sample.key_expr) != own:
                print(sample.payload.to_bytes().hex(), flush=True)

        subscriber = session.declare_subscriber("swarm/state/*", hear)
        for line in sys.stdin:
            publisher.put(bytes.fromhex(line.strip()))
        subscriber.undeclare()


main()
