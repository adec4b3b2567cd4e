"""Steps that keep no reference to the call which runs them: a connection outlives the call that opens it."""

from collections.abc import Coroutine, Generator
from contextvars import Context
from functools import partial
from types import coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

NO_CALL = Context()
"""Context without the variables of a call, for timers and shared tasks, which keep their context in memory."""


@coroutine
def without_call(steps: Coroutine[Any, None, Result]) -> Generator[Any, None, Result]:
    """Run a coroutine in an empty context, in the current task: a transport keeps the context in which it is made. A
    separate task would lose the result, an open connection, if its caller is cancelled at the end of the task.
    """
    context, step = NO_CALL.copy(), partial(steps.send, None)
    while True:
        try:
            waited_for = context.run(step)
        except StopIteration as end:
            result: Result = end.value
            return result
        try:
            yield waited_for
        except BaseException as error:
            step = partial(steps.throw, error)
        else:
            step = partial(steps.send, None)
