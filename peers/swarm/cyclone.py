"""A drone's radio by Cyclone DDS, multicast, best effort: hexadecimal states from standard input, and those heard to standard output.

Needs PyPI's cyclonedds. The type is 80 octets, as in fastdds.cpp, which says why it is not generated.
"""

import argparse
import os
import sys
import threading
from dataclasses import dataclass

from cyclonedds.core import Policy, Qos, WaitSet, ReadCondition, ViewState, InstanceState, SampleState
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import array, uint8
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

STATE_BYTES = 80


@dataclass
class State(IdlStruct, typename="swarm.State"):
    bytes: array[uint8, STATE_BYTES]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    address = parser.parse_known_args()[0].address
    os.environ["CYCLONEDDS_URI"] = (
        "<CycloneDDS><Domain><General><Interfaces>"
        f'<NetworkInterface address="{address}" multicast="true"/>'
        "</Interfaces><AllowMulticast>true</AllowMulticast></General>"
        "<Discovery><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>200</MaxAutoParticipantIndex></Discovery>"
        "</Domain></CycloneDDS>"
    )
    participant = DomainParticipant(0)
    # Local samples come back in DDS unless they are ignored.
    quality = Qos(Policy.Reliability.BestEffort, Policy.History.KeepLast(1), Policy.IgnoreLocal.Participant)
    topic = Topic(participant, "swarm_state", State)
    writer = DataWriter(participant, topic, qos=quality)
    reader = DataReader(participant, topic, qos=Qos(Policy.Reliability.BestEffort, Policy.History.KeepLast(64), Policy.IgnoreLocal.Participant))
    waiting = WaitSet(participant)
    waiting.attach(ReadCondition(reader, ViewState.Any | InstanceState.Any | SampleState.Any))

    def hear():
        while True:
            waiting.wait(1_000_000_000)
            for sample in reader.take(N=64):
                if isinstance(sample, State):
                    print(bytes(sample.bytes).hex(), flush=True)

    threading.Thread(target=hear, daemon=True).start()
    for line in sys.stdin:
        writer.write(State(bytes=list(bytes.fromhex(line.strip()))))
    os._exit(0)


main()
