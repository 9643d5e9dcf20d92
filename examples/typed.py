"""Calls back with each value of the topic `pose` and each sample of the topic `hello`."""

from typing import Annotated
import noctule

@noctule.message("demo/Pose")
class Pose:
    position_m: Annotated[list[noctule.f64], 3]
    frame: str

with noctule.Node("viewer") as node:
    dispatcher = noctule.Dispatcher()
    dispatcher.on_sample(noctule.TypedSubscriber(node, "pose", Pose), lambda pose: print(pose.value, pose.age))
    dispatcher.on_sample(node.subscriber("hello"), lambda sample: print(bytes(sample), sample.age))
    dispatcher.spin()
