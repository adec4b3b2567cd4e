"""Responses of the server under test, each as one JSON-like document in which paths of expectations are looked up."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CallResponse:
    """Response to a call over HTTP or gRPC. Of a call that is repeated until a value is reached, it is the last."""

    status: int | str
    headers: Mapping[str, str]
    """Header fields in lower case; over gRPC the initial and the trailing metadata."""
    body: object = None
    """Its JSON; None where it is a stream or no JSON."""
    events: Sequence[Mapping[str, object]] = ()
    """Events of a stream: `event`, if it has one, `data`, its JSON or else its text, and `name`, that of `order`."""
    text: str = ""
    size: int = 0
    cut: bool = False
    """Whether the connection broke before the end of the body."""
    polls: Sequence[object] = field(default=())

    @property
    def document(self) -> dict[str, object]:
        return {
            "status": self.status,
            "headers": dict(self.headers),
            "body": self.body,
            "events": list(self.events),
            "text": self.text,
            "size": self.size,
            "cut": self.cut,
            "polls": list(self.polls),
        }

    @property
    def message(self) -> str:
        """Error message in the body, for reports. If there is none, the first 200 characters of the text."""
        found = self.body
        for name in ("error", "message"):
            if isinstance(found, dict) and name in found:
                found = found[name]
        return found if isinstance(found, str) else self.text[:200]


def event_name(name: str, data: object) -> str:
    """Return the name by which `order` expectations refer to an event of a stream. It is the first of these that is
    present: `name` (the SSE field `event`), the member `type` of `data`, the text `[DONE]`, the word `data`.
    """
    if name:
        return name
    if isinstance(data, dict) and isinstance(data.get("type"), str):
        return str(data["type"])
    return "[DONE]" if data == "[DONE]" else "data"


def server_sent_events(text: str) -> list[dict[str, object]]:
    """Return the events of a server-sent event stream as objects with `data`, `name` and, if sent, `event`. `data` is
    JSON or text. A last event without a blank line after it is included; comments are not.
    """
    events: list[dict[str, object]] = []
    name, data = "", list[str]()
    for line in [*text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]:
        key, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line and key == "event":
            name = value
        elif line and key == "data":
            data.append(value)
        elif not line and (name or data):
            parsed = json_or_text("\n".join(data))
            events.append({"data": parsed, "name": event_name(name, parsed), **({"event": name} if name else {})})
            name, data = "", []
    return events


def json_or_text(text: str) -> object:
    """Return the parsed JSON of a text, or the text itself if it is not JSON."""
    try:
        parsed: object = json.loads(text)
    except ValueError:
        return text
    return parsed


ENVELOPE_HEAD = 5
END_FLAG = 2


def enveloped(message: bytes) -> bytes:
    """Return a message in the envelope of a Connect stream: flags 0, the length in four bytes, and the message."""
    return b"\0" + len(message).to_bytes(4, "big") + message


def envelopes(body: bytes) -> list[dict[str, object]]:
    """Split the body of a Connect stream into its messages, as objects with `event`, `name` and `data`. `event` and
    `name` are `message`, or `end` for the last one; `data` is the decoded JSON.
    """
    events: list[dict[str, object]] = []
    while len(body) >= ENVELOPE_HEAD:
        length = int.from_bytes(body[1:ENVELOPE_HEAD], "big")
        name = "end" if body[0] & END_FLAG else "message"
        data = json_or_text(body[ENVELOPE_HEAD : ENVELOPE_HEAD + length].decode(errors="replace"))
        events.append({"event": name, "data": data, "name": name})
        body = body[ENVELOPE_HEAD + length :]
    return events
