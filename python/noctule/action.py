"""Clients and servers of actions with dataclasses (:mod:`noctule.message`) instead of bytes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from noctule._native import ActionClient, ActionServer, Age, Goal, Node
from noctule.message import decode, description, encode, i8, i32, message, type_hash, type_name, u8, u32

if TYPE_CHECKING:
    from typing import Self

G = TypeVar("G")
R = TypeVar("R")
F = TypeVar("F")

#: The number of no goal.
_NONE = bytes(16)


@message("unique_identifier_msgs/msg/UUID")
class _Uuid:
    uuid: Annotated[list[u8], 16]


@message("builtin_interfaces/msg/Time")
class _Time:
    sec: i32
    nanosec: u32


class _Types:
    """The types that ROS 2 derives of an action."""

    def __init__(self, goal: type, result: type, feedback: type) -> None:
        base = type_name(goal).removesuffix("_Goal")
        names = [type_name(goal), type_name(result), type_name(feedback)]
        if names != [base + end for end in ("_Goal", "_Result", "_Feedback")]:
            raise ValueError(
                "an action's types are named X_Goal, X_Result and X_Feedback with one X, as in package/action/Name_Goal, "
                f"and these are {', '.join(names)}; rename them"
            )
        self.name, self.goal, self.result, self.feedback = base, goal, result, feedback

        def derived(end: str, **members: Any) -> type:
            return message(f"{base}_{end}")(make_dataclass(end, list(members.items())))

        self.send = derived("SendGoal_Request", goal_id=_Uuid, goal=goal)
        self.sent = derived("SendGoal_Response", accepted=bool, stamp=_Time)
        self.get = derived("GetResult_Request", goal_id=_Uuid)
        self.got = derived("GetResult_Response", status=i8, result=result)
        self.progress = derived("FeedbackMessage", goal_id=_Uuid, feedback=feedback)

    def described(self, node: Node) -> dict[str, Any]:
        """Keywords for opening an end of the action, once its types are described."""
        all_of_them = (self.send, self.sent, self.get, self.got, self.progress)
        for cls in all_of_them:
            node.describe(description(cls))
        return {"type_name": self.name, "hashes": tuple(type_hash(cls) for cls in all_of_them)}


@dataclass(frozen=True)
class GoalResult(Generic[R]):
    """How a goal ended: ``"succeeded"``, ``"canceled"`` or ``"aborted"``."""

    status: str
    value: R
    age: Age | None


class TypedActionClient(Generic[G, R, F]):
    """Sends goals of an action: ``TypedActionClient(node, "/count", Goal, Result, Feedback)``; further settings as ``Node.action_client``.

    Feedback of the goals that are waited for is kept, and :meth:`take_feedback` gives it.
    """

    def __init__(
        self, node: Node, action: str, goal: type[G], result: type[R], feedback: type[F], **settings: Any
    ) -> None:
        self._types = _Types(goal, result, feedback)
        self.client: ActionClient = node.action_client(action, **self._types.described(node), **settings)
        self._accepted: set[str] = set()
        self._ended: dict[str, GoalResult[R] | BaseException] = {}
        self._feedback: dict[str, list[F]] = {}
        self._answers: dict[str, int | BaseException] = {}

    def send_goal(self, goal: G) -> str:
        """Send a goal, wait until it is accepted, and give its number. Raises ``NoReplyError`` if it is rejected or not answered."""
        if not isinstance(goal, self._types.goal):
            raise TypeError(f"{type(goal).__name__} is no {self._types.goal.__name__}")
        number = self.client.start(encode(self._types.send(_Uuid(list(_NONE)), goal)))
        self._feedback[number] = []
        while number not in self._accepted:
            if number in self._ended:
                self._raise(number)
            self._step(None)
        return number

    def wait_for_result(self, goal: str) -> GoalResult[R]:
        """Wait until a goal has ended. Raises ``NoReplyError`` if it has no result, with the reason."""
        if goal not in self._feedback:
            raise ValueError(f"goal {goal} is not followed; its result was taken, or it was never sent")
        while goal not in self._ended:
            self._step(None)
        self._accepted.discard(goal)
        ended = self._ended[goal]
        if isinstance(ended, BaseException):
            self._raise(goal)
        self._forget(goal)
        assert isinstance(ended, GoalResult)
        return ended

    def take_feedback(self, goal: str, timeout: float | None = 0.0) -> list[F]:
        """The feedback that came of a goal since the last call; waits up to ``timeout`` seconds, or for ever, for some or for the goal's end."""
        kept = self._feedback.get(goal, [])
        if not kept and goal not in self._ended:
            self._step(timeout)
        taken = list(kept)
        kept.clear()
        return taken

    def cancel(self, goal: str) -> int:
        """Ask to cancel a goal: 0 it is being canceled, 1 refused, 2 not known, 3 it has ended. Raises ``NoReplyError`` without an answer."""
        goal = self.client.cancel(goal)
        self._answers.pop(goal, None)
        while goal not in self._answers:
            self._step(None)
        answer = self._answers.pop(goal)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def send_goal_async(self, goal: G) -> str:
        """As ``send_goal`` while other tasks run; one task at a time may use a client."""
        return await asyncio.get_running_loop().run_in_executor(None, self.send_goal, goal)

    async def result_async(self, goal: str) -> GoalResult[R]:
        """As ``wait_for_result`` while other tasks run."""
        return await asyncio.get_running_loop().run_in_executor(None, self.wait_for_result, goal)

    def close(self) -> None:
        """Announce to other nodes that it is gone."""
        self.client.close()

    def _step(self, timeout: float | None) -> None:
        event = self.client.next(timeout)
        if event is None:
            return
        if event.kind == "accepted":
            self._accepted.add(event.goal)
        elif event.kind == "feedback" and event.goal in self._feedback:
            self._feedback[event.goal].append(decode(self._types.progress, bytes(event)).feedback)
        elif event.kind == "result":
            value: R = decode(self._types.got, bytes(event)).result
            self._ended[event.goal] = GoalResult(event.status or "", value, event.age)
        elif event.kind == "failed" and event.error is not None:
            self._ended[event.goal] = event.error
        elif event.kind == "cancel":
            answer = event.error if event.error is not None else event.cancel_code
            self._answers[event.goal] = answer if answer is not None else 0

    def _raise(self, goal: str) -> None:
        why = self._ended[goal]
        self._forget(goal)
        assert isinstance(why, BaseException)
        raise why

    def _forget(self, goal: str) -> None:
        del self._ended[goal]
        self._feedback.pop(goal, None)
        self._accepted.discard(goal)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class TypedGoal(Generic[G, R, F]):
    """A goal at its server: ``value`` is what was asked for. What is not here is in ``goal``."""

    def __init__(self, goal: Goal, types: _Types, value: G) -> None:
        self.goal, self._types, self.value = goal, types, value

    def feedback(self, value: F) -> None:
        """Publish feedback."""
        self.goal.feedback(encode(self._types.progress(_Uuid(list(_NONE)), value)))

    def succeed(self, result: R) -> None:
        """End it as it should."""
        self._end("succeeded", result)

    def canceled(self, result: R) -> None:
        """End it as it was asked to."""
        self._end("canceled", result)

    def abort(self, result: R) -> None:
        """Give it up."""
        self._end("aborted", result)

    def is_canceling(self) -> bool:
        """Whether it is to be canceled."""
        return self.goal.wait_for_cancel(0.0)

    def _end(self, status: str, result: R) -> None:
        self.goal.end(status, encode(self._types.got(0, result)))


class TypedActionServer(Generic[G, R, F]):
    """Executes goals of an action: ``TypedActionServer(node, "/count", Goal, Result, Feedback)``; further settings as ``Node.action_server``.

    ``empty``: the result of goals that left none.
    """

    def __init__(
        self,
        node: Node,
        action: str,
        goal: type[G],
        result: type[R],
        feedback: type[F],
        *,
        empty: R | None = None,
        **settings: Any,
    ) -> None:
        self._types = _Types(goal, result, feedback)
        if empty is not None:
            settings["empty_result"] = encode(self._types.got(0, empty))
        self.server: ActionServer = node.action_server(action, **self._types.described(node), **settings)

    def next(self, timeout: float | None = None) -> TypedGoal[G, R, F] | None:
        """The next goal, to be accepted or rejected by its ``goal``; ``None`` when the time is over. One that cannot be read is rejected."""
        goal = self.server.next(timeout)
        if goal is None:
            return None
        try:
            value: G = decode(self._types.send, bytes(goal)).goal
        except ValueError:
            goal.reject()
            return None
        return TypedGoal(goal, self._types, value)

    def close(self) -> None:
        """Announce to other nodes that it is gone; goals under way end with it."""
        self.server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
