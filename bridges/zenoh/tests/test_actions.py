"""An action between two sites: its three services and two topics pass as all others do."""

import threading

import noctule
import ros2
from joined import DOMAINS, Bridge
from ros2 import until


@noctule.message("demo/action/Count_Goal")
class CountGoal:
    to: noctule.u32


@noctule.message("demo/action/Count_Result")
class CountResult:
    counted: list[noctule.u32]


@noctule.message("demo/action/Count_Feedback")
class CountFeedback:
    at: noctule.u32


TYPES = (CountGoal, CountResult, CountFeedback)
UNTIL_CANCELED = 1_000


def work(goal: noctule.TypedGoal, is_over: threading.Event) -> None:
    goal.goal.accept()
    if goal.value.to == UNTIL_CANCELED:
        while not goal.goal.wait_for_cancel(0.05):
            if is_over.is_set():
                return goal.goal.close()
        return goal.canceled(CountResult([7]))
    for at in range(1, goal.value.to + 1):
        goal.feedback(CountFeedback(at))
    return goal.succeed(CountResult(list(range(1, goal.value.to + 1))))


def test_goals_feedback_results_and_cancellation_pass(router, bus):
    far_bus, is_over = next(DOMAINS), threading.Event()
    near, far = Bridge(router, bus), Bridge(router, far_bus)
    try:
        with noctule.Node("robot", domain=bus) as robot, noctule.Node("desk", domain=far_bus) as desk:
            with (
                noctule.TypedActionServer(robot, "/count", *TYPES, empty=CountResult([])) as server,
                noctule.TypedActionClient(desk, "/count", *TYPES, deadline=ros2.TIMEOUT) as client,
            ):

                def serve() -> None:
                    while not is_over.is_set():
                        if goal := server.next(timeout=0.02):
                            work(goal, is_over)

                thread = threading.Thread(target=serve)
                thread.start()
                try:
                    assert client.client.wait_for_server(ros2.TIMEOUT)

                    def with_feedback() -> bool:
                        # Feedback and result take different ways, so that feedback may come when its goal has ended.
                        goal, seen = client.send_goal(CountGoal(3)), []
                        while new := client.take_feedback(goal, ros2.TIMEOUT):
                            seen += [feedback.at for feedback in new]
                        result = client.wait_for_result(goal)
                        assert (result.status, result.value) == ("succeeded", CountResult([1, 2, 3]))
                        return 3 in seen

                    until(with_feedback, "feedback passes")
                    goal = client.send_goal(CountGoal(UNTIL_CANCELED))
                    assert client.cancel(goal) == 0
                    result = client.wait_for_result(goal)
                    assert (result.status, result.value) == ("canceled", CountResult([7]))
                    way = until(lambda: far.service("/count/_action/send_goal"), "the report comes later")["way"]
                    assert way == "from_zenoh"
                finally:
                    is_over.set()
                    thread.join()
    finally:
        codes = near.close(), far.close()
    assert codes == (0, 0)
