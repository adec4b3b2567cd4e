"""Table of the requests of which loads consist, by name. A chat request has the name of its model, which selects the
kind of answer.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec

from bench import chat_bodies, embedding_bodies
from bench.chat_bodies import Fault


class Question(NamedTuple):
    """Request of a load, with the check of its responses."""

    path: str
    body: bytes
    fault: Callable[[bytes], Fault | None]
    """Check of the body of a response with status 200."""
    local: bool = False
    """Whether a gateway with local models answers without the upstream."""

    def request(self, port: int, credential: str) -> bytes:
        """Return the HTTP request as bytes."""
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: */*\r\n"
            f"Authorization: Bearer {credential}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(self.body)}\r\n\r\n"
        )
        return head.encode() + self.body

    def wrong(self, status: int, body: bytes) -> Fault | None:
        """Return why a response is wrong; None if it is right."""
        if status != 200:
            return Fault(f"status {status}", body)
        try:
            return self.fault(body)
        except msgspec.MsgspecError as error:
            return Fault(str(error), body)


QUESTIONS = {
    model: Question(chat_bodies.PATH, chat_bodies.request_body(model), partial(chat_bodies.fault, model))
    for model in chat_bodies.MODELS
} | {
    request.name: Question(
        embedding_bodies.PATH,
        embedding_bodies.request_body(request),
        partial(embedding_bodies.fault, request),
        request.local,
    )
    for request in embedding_bodies.REQUESTS
}
