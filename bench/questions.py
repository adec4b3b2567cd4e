"""THE TABLE of what the load asks, by name: in chat, that of the model, which says how the fake upstream answers."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec

from bench import exchange, vectors
from bench.exchange import Fault


class Question(NamedTuple):
    """A request, and how its answers are told right from wrong."""

    path: str
    body: bytes
    fault: Callable[[bytes], Fault | None]
    """Of the body of an answer with status 200."""
    local: bool = False
    """Whether a gateway with models of its own asks nobody."""

    def wrong(self, status: int, body: bytes) -> Fault | None:
        """What is wrong with an answer, None if it is a right one."""
        if status != 200:
            return Fault(f"status {status}", body)
        try:
            return self.fault(body)
        except msgspec.MsgspecError as error:
            return Fault(str(error), body)


QUESTIONS = {
    model: Question(exchange.PATH, exchange.ask(model), partial(exchange.fault, model)) for model in exchange.MODELS
} | {
    asked.name: Question(vectors.PATH, vectors.ask(asked), partial(vectors.fault, asked), asked.local)
    for asked in vectors.ASKED
}
