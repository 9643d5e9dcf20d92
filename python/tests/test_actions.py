"""Clients and servers of actions from Python, on one host."""

import asyncio
import os
import threading
from itertools import count

import noctule
import pytest

DOMAINS = count(3_500 + os.getpid() % 200 * 5)


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
REJECT, UNTIL_CANCELED, DROP = 1_000, 1_001, 1_002


def work(goal: noctule.TypedGoal, is_over: threading.Event) -> None:
    to = goal.value.to
    if to == REJECT:
        return goal.goal.reject()
    goal.goal.accept()
    if to == UNTIL_CANCELED:
        while not goal.goal.wait_for_cancel(0.05):
            if is_over.is_set():
                return goal.goal.close()
        return goal.canceled(CountResult([7]))
    if to == DROP:
        return goal.goal.close()
    for at in range(1, to + 1):
        goal.feedback(CountFeedback(at))
    return goal.succeed(CountResult(list(range(1, to + 1))))


@pytest.fixture
def node():
    """A node with a server of /count, which runs one goal after the other until the test is over."""
    is_over = threading.Event()
    with noctule.Node("test", domain=next(DOMAINS), interface="127.0.0.1") as node:
        with noctule.TypedActionServer(node, "/count", *TYPES, empty=CountResult([])) as server:

            def serve() -> None:
                while not is_over.is_set():
                    goal = server.next(timeout=0.02)
                    if goal is not None:
                        work(goal, is_over)

            thread = threading.Thread(target=serve)
            thread.start()
            yield node
            is_over.set()
            thread.join()


def test_a_goal_gives_feedback_and_a_result(node):
    with noctule.TypedActionClient(node, "/count", *TYPES, deadline=60.0) as client:
        assert client.client.wait_for_server(60.0)
        goal = client.send_goal(CountGoal(5))
        result = client.wait_for_result(goal)
        assert (result.status, result.value, result.age.bound_ns) == ("succeeded", CountResult([1, 2, 3, 4, 5]), 0)
        with pytest.raises(ValueError, match="is not followed"):
            client.wait_for_result(goal)
        with pytest.raises(noctule.NoReplyError, match="rejected goal"):
            client.send_goal(CountGoal(REJECT))
        with pytest.raises(TypeError, match="CountResult is no CountGoal"):
            client.send_goal(CountResult([]))
        dropped = client.wait_for_result(client.send_goal(CountGoal(DROP)))
        assert (dropped.status, dropped.value) == ("aborted", CountResult([]))


def test_feedback_comes_before_the_end_and_a_goal_is_canceled(node):
    with noctule.TypedActionClient(node, "/count", *TYPES, deadline=60.0) as client:
        goal = client.send_goal(CountGoal(3))
        seen: list[int] = []
        while len(seen) < 3:
            seen += [feedback.at for feedback in client.take_feedback(goal, None)]
        assert seen == [1, 2, 3]
        assert client.wait_for_result(goal).status == "succeeded"
        goal = client.send_goal(CountGoal(UNTIL_CANCELED))
        assert client.cancel(goal) == 0
        result = client.wait_for_result(goal)
        assert (result.status, result.value) == ("canceled", CountResult([7]))
        assert client.cancel(goal) == 3
        assert client.cancel("5" * 32) == 2
        with pytest.raises(ValueError, match="no number of a goal"):
            client.cancel("5")


def test_goals_are_awaited_while_other_tasks_run(node):
    async def main() -> str:
        with noctule.TypedActionClient(node, "/count", *TYPES, deadline=60.0) as client:
            goal = await client.send_goal_async(CountGoal(UNTIL_CANCELED))
            waiting = asyncio.create_task(client.result_async(goal))
            with noctule.TypedActionClient(node, "/count", *TYPES, deadline=60.0) as other:
                assert await asyncio.to_thread(other.cancel, goal) == 0
            return (await waiting).status

    assert asyncio.run(main()) == "canceled"


def test_types_that_are_no_action_are_refused(node):
    with pytest.raises(ValueError, match="named X_Goal, X_Result and X_Feedback"):
        noctule.TypedActionClient(node, "/count", CountGoal, CountGoal, CountFeedback)
