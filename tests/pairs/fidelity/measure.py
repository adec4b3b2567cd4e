"""Measurement of each field on its way from a face to a provider of a format.

A body is decoded by its face, encoded for the target, and the upstream body is decoded again by the target's own face:
the value at the field's path is compared, and the report or the refusal is recorded.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from tests.pairs.fidelity import converse_bodies
from tests.pairs.fidelity.alone import ALONE
from tests.pairs.fidelity.conversation import CONVERSATION
from tests.pairs.fidelity.options import OPTIONS
from tests.pairs.fidelity.sample import TARGETS, Alone, Body, Sample
from tests.pairs.table import LEAST, STRICT_MODELS
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS as CODECS
from umg_grpc.wire import TEXT_UPSTREAMS
from umg_grpc.wire.text_format_interface import FaceRequest

REFUSALS = (pb.ERROR_REASON_UNTRANSLATABLE, pb.ERROR_REASON_UNSUPPORTED_FIELD)


@dataclass(frozen=True)
class Cell:
    """The result of converting a field of a face for a target."""

    kind: str
    """`exact`, `mapped`, `dropped`, `refused`, `ignored`, `silent` (which must not be)."""
    instead: str = ""
    """With `mapped`: the replacement that the target gets."""
    note: str = ""
    """The reason in the gateway's own words, for readers looking for the cause."""

    @property
    def text(self) -> str:
        """Return the cell as the page shows it."""
        match self.kind:
            case "exact":
                return "="
            case "mapped":
                return f"~ {self.instead}"
            case "refused":
                return "400"
            case "ignored":
                return "-"
            case kind:
                return kind


@dataclass(frozen=True)
class Row:
    """A field in all pairs whose face can express it."""

    sample: Sample | Alone
    cells: dict[tuple[str, str], Cell]


def rows(samples: Iterable[Sample]) -> Iterator[Row]:
    """Yield the measured row of each sample."""
    for sample in samples:
        pairs = [(face, target) for face in sample.bodies for target in TARGETS]
        yield Row(sample, {pair: measure(sample, *pair) for pair in pairs})


def alone() -> Iterator[Row]:
    """Yield the measured rows of the fields without a canonical field."""
    for field in ALONE:
        yield Row(field, {(field.face, target): measure_alone(field, target) for target in TARGETS})


@cache  # thousands of measurements, which the page and the tests of two directories read
def everything() -> dict[str, list[Row]]:
    """Return all tables by their titles."""
    return {area.title: list(rows(area.samples)) for area in (*OPTIONS, *CONVERSATION)} | {
        "Fields of one format alone": list(alone())
    }


def decoded(face: str, body: Body) -> FaceRequest:
    """Return the canonical form of a face's body, completed as by the handler of its path."""
    request = CODECS[face].decode_request(json.dumps(LEAST[face] | body).encode(), {})
    request.canonical.model = "m"
    return request


def understood(target: str, body: bytes) -> pb.GenerateRequest:
    """Return the canonical form of a provider's body. Files are added: chat providers take them, the chat face does
    not.
    """
    if target == "converse":
        return converse_bodies.decode(body, judged=False)
    whole, files = json.loads(body), list[pb.Part]()
    if target == "chat":
        for message in whole["messages"]:
            if isinstance(message.get("content"), list):
                files += [_file(part["file"]) for part in message["content"] if part["type"] == "file"]
                message["content"] = [part for part in message["content"] if part["type"] != "file"]
    received = CODECS[target].decode_request(json.dumps(whole).encode(), {}).canonical
    if files:
        received.messages.add(role=pb.ROLE_USER, parts=files)
    return received


def _file(file: dict[str, str]) -> pb.Part:
    media = pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, filename=file.get("filename", ""))
    if "file_id" in file:
        media.file_id = file["file_id"]
    else:
        media.mime_type, data = file["file_data"].removeprefix("data:").split(";base64,")
        media.data = base64.b64decode(data)
    return pb.Part(media=media)


def measure(sample: Sample, face: str, target: str) -> Cell:
    """Measure a sample for a pair. Raise ValueError for a sample that does not set its field."""
    request, stream, notes = decoded(face, sample.bodies[face])
    value = at(request, sample.path)
    if value in (None, "", [], {}):
        raise ValueError(f"{sample.row} of {face}: its body does not set {sample.path}")
    try:
        upstream = TEXT_UPSTREAMS[target].encode_request(request, STRICT_MODELS[target], stream, notes=notes)
    except UmgError as error:
        return _refused(error)
    try:
        received = understood(target, upstream.body)
    except UmgError as error:
        return Cell("silent", note=f"no body of that format: {error.message}")
    report = upstream.report
    if upstream.local_stops and value == [*received.stop_sequences, *upstream.local_stops]:
        first = f"the first {len(received.stop_sequences)}, and " if received.stop_sequences else ""
        return Cell("mapped", f"{first}the gateway ends the text")
    named = _named(report.dropped, sample)
    if same(value, at(received, sample.path)):
        return Cell("exact", note=report.header())
    if named is not None:
        name, instead = named
        return Cell("mapped", instead) if instead is not None else Cell("dropped", note=name)
    elsewhere = sample.elsewhere.get(target, "")
    if elsewhere and same(value, at(received, elsewhere)):
        return Cell("mapped", _short(elsewhere))
    path, expected = sample.instead.get(target, ("", ""))
    if path and same(expected, words(at(received, path))):
        return Cell("mapped", f"{_short(path)} {_value(received, path)}")
    return Cell("ignored" if sample.ignored else "silent", note=f"{report.header()} {upstream.body.decode()}")


def measure_alone(field: Alone, target: str) -> Cell:
    """Measure a field that has no canonical field."""
    request, _, notes = decoded(field.face, field.body)
    try:
        upstream = TEXT_UPSTREAMS[target].encode_request(request, STRICT_MODELS[target], False, notes=notes)
    except UmgError as error:
        return _refused(error)
    if target == field.face:
        sent, came = json.loads(upstream.body), LEAST[field.face] | field.body
        whole = {key: value for key, value in came.items() if key != "model"}
        header = [
            name
            for name in whole
            if name not in sent and whole[name] == upstream.headers.get("anthropic-beta", "").split(",")
        ]
        kept = {key: value for key, value in whole.items() if key not in header}
        return Cell("exact" if {key: sent.get(key) for key in kept} == kept else "silent", note=upstream.body.decode())
    if upstream.report.dropped:
        return Cell("dropped", note=upstream.report.header())
    return Cell("ignored" if field.ignored else "silent", note=upstream.body.decode())


def _refused(error: UmgError) -> Cell:
    if error.reason not in REFUSALS:
        raise error
    return Cell("refused", note=error.message)


def _named(dropped: dict[str, str | None], sample: Sample) -> tuple[str, str | None] | None:
    words = {name.removesuffix("_json") for name in re.findall(r"\w+", sample.path)}.union(sample.named)
    for name, instead in dropped.items():
        if re.findall(r"\w+", name)[-1].removesuffix("_json") in words:
            return name, instead
    return None


# --- values


def at(root: Message, path: str) -> object:
    """Return the value at a path; None where there is none."""
    if path.startswith("message_of(assistant)."):
        found = [message for message in root.messages if message.role == pb.ROLE_ASSISTANT]
        return _walk(found[0], path.split(".", 1)[1]) if found else None
    if path.startswith("part."):
        return next(
            (value for part in _parts(root) if (value := _of_part(part, path[5:])) not in (None, False, "", [])), None
        )
    return _walk(root, path)


def _parts(root: Message) -> Iterator[pb.Part]:
    for message in root.messages:
        yield from message.parts


def _of_part(part: pb.Part, path: str) -> object:
    head, _, rest = path.partition(".")
    if head in ("citations", "logprobs"):  # of the part's text
        return [_walk(each, rest) for each in getattr(part.text, head) if _walk(each, rest) is not None] or None
    if head == "text" and part.text.text == "hi":
        return None
    return _walk(part, path)


def _walk(value: object, path: str) -> object:
    for name, index in re.findall(r"(\w+)(\[\d*\])?", path):
        if not isinstance(value, Message):
            return None
        field = value.DESCRIPTOR.fields_by_name[name]
        if field.has_presence and not value.HasField(name):
            return None
        value = getattr(value, name)
        if index == "[]":
            rest = path.split(f"{name}[].", 1)[1]
            found = [_walk(each, rest) for each in value]  # type: ignore[attr-defined]
            return [each for each in found if each is not None]
        if index:
            place = int(index[1:-1])
            if len(value) <= place:  # type: ignore[arg-type]
                return None
            value = value[place]  # type: ignore[index]
    return _plain(value)


def _plain(value: object) -> object:
    if isinstance(value, Message):
        return MessageToDict(value) or "set"
    if isinstance(value, str | bytes | int | float | bool):
        return value
    if hasattr(value, "items"):
        return dict(value.items())
    return [_plain(each) for each in value]  # type: ignore[attr-defined]


def same(one: object, other: object) -> bool:
    """Return whether two values mean the same: JSON in any spacing, search tools under any name."""
    if isinstance(one, dict) and isinstance(other, dict):
        one, other = (
            {key: value for key, value in each.items() if key not in ("declaredType", "callId")}
            for each in (one, other)
        )
    if isinstance(one, str) and isinstance(other, str) and one[:1] in ("{", "["):
        with suppress(ValueError):
            return bool(_flat(json.loads(one)) == _flat(json.loads(other)))
    if isinstance(one, bytes) and isinstance(other, str):  # a text file that is sent as text
        return one.decode("utf-8", "replace") == other
    if isinstance(one, list) and not isinstance(other, list):
        one = one[0]
    return type(one) is type(other) and one == other


def _flat(value: object) -> object:
    if isinstance(value, dict) and isinstance(inner := value.get("grammar"), dict):
        return {key: each for key, each in value.items() if key != "grammar"} | inner
    return value


def words(value: object) -> str:
    """Return a value as `Sample.instead` writes it."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _short(path: str) -> str:
    return path.removeprefix("part.").replace("[0]", "").replace("[]", "")


def _value(received: pb.GenerateRequest, path: str) -> str:
    value = at(received, path)
    if path == "reasoning.mode" and isinstance(value, int):
        return pb.ReasoningMode.Name(value).removeprefix("REASONING_MODE_").lower()
    return words(value)
