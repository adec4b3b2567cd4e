"""Answer to a call as one document, in which the paths of expectations are looked up."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Answer:
    """Answer to one call, or to the last of its polls."""

    status: int | str
    """Status code of HTTP, or the name of gRPC's."""
    headers: Mapping[str, str]
    """Header fields in lower case; over gRPC the initial and the trailing metadata."""
    body: object = None
    """Its JSON; None where it is a stream or no JSON."""
    events: Sequence[Mapping[str, object]] = ()
    """Events of a stream: `event`, if it has one, `data`, its JSON or else its text, and `name`, that of `order`."""
    text: str = ""
    size: int = 0
    """Bytes of the body."""
    cut: bool = False
    """Whether the connection broke before the end of the body."""
    polls: Sequence[object] = field(default=())
    """Bodies of all answers of a poll."""

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
        """Message of an error, for reports."""
        found = self.body
        for name in ("error", "message"):
            if isinstance(found, dict) and name in found:
                found = found[name]
        return found if isinstance(found, str) else self.text[:200]


def event_name(name: str, data: object) -> str:
    """Return the name of an event for `order`: its own, or else its `type`, or `[DONE]`, or `data`."""
    if name:
        return name
    if isinstance(data, dict) and isinstance(data.get("type"), str):
        return str(data["type"])
    return "[DONE]" if data == "[DONE]" else "data"


def server_sent_events(text: str) -> list[dict[str, object]]:
    """Return the events of a stream of server-sent events, without comments. The last one may lack its blank line."""
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
    """Return the JSON of a text, or the text where it is none."""
    try:
        parsed: object = json.loads(text)
    except ValueError:
        return text
    return parsed


ENVELOPE_HEAD = 5
LAST = 2
"""Flag of the envelope that ends a Connect stream."""


def enveloped(message: bytes) -> bytes:
    """Return a message in the envelope of a Connect stream."""
    return b"\0" + len(message).to_bytes(4, "big") + message


def envelopes(body: bytes) -> list[dict[str, object]]:
    """Split the body of a Connect stream into its messages, one object for each: `event` is `message`, or `end` for the
    last, and `data` is the decoded JSON.
    """
    events: list[dict[str, object]] = []
    while len(body) >= ENVELOPE_HEAD:
        length = int.from_bytes(body[1:ENVELOPE_HEAD], "big")
        name = "end" if body[0] & LAST else "message"
        data = json_or_text(body[ENVELOPE_HEAD : ENVELOPE_HEAD + length].decode(errors="replace"))
        events.append({"event": name, "data": data, "name": name})
        body = body[ENVELOPE_HEAD + length :]
    return events
