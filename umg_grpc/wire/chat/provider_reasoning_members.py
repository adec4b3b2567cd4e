"""Reasoning state in members that providers have added to chat messages and calls
(`knowledge.reasoning_state_members`). It is read from responses, joined from a stream's pieces, and put back in
requests.

Canonical form: a `ReasoningState` of the format `chat`, whose data is base64 of a JSON object carrier -> value.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Literal

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.reasoning_state_members import REASONING_CARRIERS, ReasoningCarrier
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, ELEMENTS_DECODER, MEMBERS_DECODER, JsonObject, is_present
from umg_grpc.wire.core.streamed_text_buffers import Pieces

State = dict[str, Raw]
"""Name of a carrier (a member that holds reasoning state, as the table names it) -> its value."""
Place = Literal["message", "call"]

REASONING_SEPARATOR = "\n\n"  # text between two pieces of reasoning in one joined text
TEXT_MEMBERS = ("text", "summary", "thinking")  # members of an item that hold text of the reasoning
MIN_SNAPSHOT = 16  # characters of a piece from which it is a snapshot if it begins with all earlier text of its item

MAX_STATE_BYTES = 4 << 20
"""Maximum bytes of a state that is joined from pieces, about ten times the largest state of a model."""

_PLACES: dict[Place, tuple[ReasoningCarrier, ...]] = {
    "message": tuple(row for row in REASONING_CARRIERS if row.place == "message"),
    "call": tuple(row for row in REASONING_CARRIERS if row.place == "call"),
}
_ROWS = {row.member: row for row in REASONING_CARRIERS}
MESSAGE_MEMBERS = tuple(dict.fromkeys(row.member.partition(".")[0] for row in _PLACES["message"]))
"""Members of messages that hold carriers. Structs of messages have a raw field for each."""
message_members = attrgetter(*MESSAGE_MEMBERS)
"""Function that returns the `MESSAGE_MEMBERS` of a message's or delta's struct; `NO_MEMBERS` if it has none."""
NO_MEMBERS = tuple(ABSENT_MEMBER for _ in MESSAGE_MEMBERS)

_OPAQUE_TEXT = re.compile(
    rb'"(?:data|signature|encrypted_content|thought_signature|reasoning_\w+)" ?: ?"((?:[^"\\]|\\.)+)"'
)

_MARKS = (b'"reasoning_', b"thought_signature", b'"thinking_blocks"', b'"encrypted_content"')
"""Byte strings: each response with reasoning contains one of them, and few other responses do."""
_UNRETURNED = re.compile(
    rb'"(?:reasoning_content|thought_signatures?|%b)" ?: ?(?!null|""|\[\]|\{\})[^ ]'
    % b"|".join(name.encode() for name in MESSAGE_MEMBERS if not name.startswith("provider_"))
)

# --- reading


def has_unreturned_reasoning(body: bytes) -> bool:
    """Return whether a body or frames have reasoning, or its state, that chat clients do not send back."""
    first, second, third, fourth = _MARKS  # a loop over them would take several times as long for each frame
    if first in body or second in body or third in body or fourth in body:
        return _UNRETURNED.search(body) is not None
    return False


def read_message(message: object) -> State:
    """Return the state in the members of a message or delta, {} without any. Raise ValueError for invalid JSON."""
    values = message_members(message)
    if values == NO_MEMBERS:
        return {}
    state, members = State(), dict(zip(MESSAGE_MEMBERS, values, strict=True))
    for row in _PLACES["message"]:
        name, _, inner = row.member.partition(".")
        value = members[name]
        if inner:
            value = (
                MEMBERS_DECODER.decode(value).get(inner, ABSENT_MEMBER)
                if bytes(value).startswith(b"{")
                else ABSENT_MEMBER
            )
        _add(state, row, value)
    return state


def read_call(provider_fields: Mapping[str, Raw]) -> State:
    """Return the state in `provider_specific_fields` of a tool call; {} if they have none."""
    state = State()
    for row in _PLACES["call"]:
        _add(state, row, provider_fields.get(row.member.partition(".")[2], ABSENT_MEMBER))
    return state


def _add(state: State, row: ReasoningCarrier, value: Raw) -> None:
    if bytes(value) not in {b"", b"null", b"[]", b"{}", b'""'}:
        state[row.member] = value


def text_of(state: State) -> str:
    """Return the text of the reasoning in the items of a state, "" without any."""
    for row in REASONING_CARRIERS:
        if row.merge == "items" and (raw := state.get(row.member)) is not None:
            joined = CarriedState()
            if text := joined.add({row.member: raw}):
                return text
    return ""


# --- the canonical form


def to_canonical(state: State) -> pb.ReasoningState:
    """Return a state in its canonical form."""
    return pb.ReasoningState(data=base64.b64encode(msgspec.json.encode(state)).decode(), format="chat")


def place_state(state: State, message: pb.Message) -> None:
    """Add a message's state to its reasoning part, its first call, its last part, or else a new reasoning part."""
    if not state:
        return
    thoughts = [part for part in message.parts if part.HasField("reasoning")]
    calls = [part for part in message.parts if part.HasField("tool_call")]
    candidates = [*thoughts[:1], *calls[:1], *message.parts[-1:]]
    free = next((part for part in candidates if not part.HasField("state")), None)
    if free is not None:
        free.state.CopyFrom(to_canonical(state))
        return
    parts = [hidden_reasoning(state), *message.parts]
    del message.parts[:]
    message.parts.extend(parts)


def hidden_reasoning(state: State) -> pb.Part:
    """Return a reasoning part that has a state and no text."""
    return pb.Part(reasoning=pb.ReasoningPart(redacted=True), state=to_canonical(state))


def from_canonical(state: pb.ReasoningState) -> State:
    """Return the state of a part; {} for a state of another format, or for data that the gateway cannot have sent."""
    if state.format != "chat":
        return {}
    try:
        members = MEMBERS_DECODER.decode(base64.b64decode(state.data, validate=True))
    except (ValueError, binascii.Error, RecursionError):
        return {}
    return {name: value for name, value in members.items() if name in _ROWS}


def identity(data: str) -> str:
    """Return the first opaque text in a state's data, which stays when clients rewrite the JSON; else the data."""
    try:
        found = _OPAQUE_TEXT.search(base64.b64decode(data, validate=True))
    except (ValueError, binascii.Error):
        return data
    return found[1].decode("utf-8", "replace") if found else data


# --- writing


def put(state: State, members: JsonObject, place: Place) -> None:
    """Add the members of a state to `members` of a message or a call (`place`), in place."""
    for row in _PLACES[place]:
        if (value := state.get(row.member)) is None:
            continue
        name, _, inner = row.member.partition(".")
        if not inner:
            members[name] = value
            continue
        outer = members.get(name)
        members[name] = {**(outer if isinstance(outer, dict) else {}), inner: value}


def text_member(state: State) -> str:
    """Return the name of the member for reasoning text that accompanies a state; "" for the usual member."""
    return next((row.text_member for row in REASONING_CARRIERS if row.text_member and row.member in state), "")


def joined(states: Iterable[State]) -> State:
    """Return the states of the parts of one message as one state. A state repeated in another part counts once."""
    known = [state for state in states if state]
    if len(known) > 1:
        known = list({msgspec.json.encode(state): state for state in known}.values())
    if len(known) < 2:
        return known[0] if known else {}
    whole = CarriedState()
    for state in known:
        whole.add(state)
    return whole.take()


# --- joining the pieces of a stream


class CarriedState:
    """State received in pieces: the values of the carriers so far. A state above `MAX_STATE_BYTES` is dropped."""

    def __init__(self) -> None:
        self._items: dict[str, _Items] = {}
        self._values = State()
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._items or self._values) and self._size <= MAX_STATE_BYTES

    def add(self, pieces: State) -> str:
        """Add the values of one delta; return its reasoning text ("" if there is none). Raise ValueError for invalid
        JSON.
        """
        added = ""
        self._size += sum(len(bytes(raw)) for raw in pieces.values())
        if self._size > MAX_STATE_BYTES:  # the text of each piece is shown nevertheless
            self._items, self._values = {}, State()
        for name, raw in pieces.items():
            row = _ROWS[name]
            if row.merge == "replace" or not bytes(raw).startswith(b"["):
                self._values[name] = raw
                continue
            items = self._items.setdefault(name, _Items(joins=row.merge == "items"))
            texts = [items.add(element) for element in ELEMENTS_DECODER.decode(raw)]
            added = added or "".join(texts)
        return added

    def take(self) -> State:
        """Return the state received so far, and clear it."""
        if self._size > MAX_STATE_BYTES:
            self._items, self._values = {}, State()
        state = {name: Raw(msgspec.json.encode(list(items.values()))) for name, items in self._items.items()}
        state.update(self._values)
        self._items, self._values = {}, State()
        return state


class _Item:
    def __init__(self, members: dict[str, Raw]) -> None:
        self.members = members
        self.texts: dict[str, Pieces] = {}

    def add(self, members: dict[str, Raw]) -> str:
        added = list[str]()
        for name, raw in members.items():
            if name in TEXT_MEMBERS and bytes(raw).startswith(b'"'):
                added.append(self._add_text(name, msgspec.json.decode(raw, type=str)))
            elif not is_present(self.members.get(name, ABSENT_MEMBER)):
                self.members[name] = raw
        return "".join(added)

    def _add_text(self, name: str, text: str) -> str:
        pieces = self.texts.setdefault(name, Pieces())
        if MIN_SNAPSHOT <= pieces.size <= len(text) and text.startswith(pieces.text()):
            text = text[pieces.size :]
        pieces.append(text)
        return text

    def value(self) -> dict[str, Raw]:
        return self.members | {name: Raw(msgspec.json.encode(self.texts[name].text())) for name in self.texts}


class _Items:
    """List of items received in pieces. A piece belongs to the last item with its type and index, or without an index
    to the last item if the types are equal. A signature ends an item's text; opaque data is never joined.
    """

    def __init__(self, *, joins: bool) -> None:
        self._joins = joins
        self._all: list[_Item | Raw] = []
        self._by_index: dict[tuple[bytes, bytes], _Item] = {}
        self._has_text = False

    def add(self, raw: Raw) -> str:
        if not self._joins or not bytes(raw).startswith(b"{"):
            self._all.append(raw)
            return ""
        members = MEMBERS_DECODER.decode(raw)
        kind, index = bytes(members.get("type", ABSENT_MEMBER)), members.get("index", ABSENT_MEMBER)
        key = (kind, bytes(index))
        last = self._all[-1] if self._all and isinstance(self._all[-1], _Item) else None
        known = self._by_index.get(key) if is_present(index) else last
        starts = known is None or not _continues(members, known.members)
        if known is None or starts:
            texts = {
                name: ABSENT_MEMBER for name in TEXT_MEMBERS if bytes(members.get(name, ABSENT_MEMBER)).startswith(b'"')
            }
            known = _Item({**members, **texts})
            self._all.append(known)
        self._by_index[key] = known
        text = known.add(members)
        separator = REASONING_SEPARATOR if starts and text and self._has_text else ""
        self._has_text = self._has_text or bool(text)
        return separator + text

    def values(self) -> Iterator[object]:
        for item in self._all:
            yield item.value() if isinstance(item, _Item) else item


def _continues(piece: Mapping[str, Raw], item: Mapping[str, Raw]) -> bool:
    if bytes(piece.get("type", ABSENT_MEMBER)) != bytes(item.get("type", ABSENT_MEMBER)):
        return False
    both = [name for name in piece if is_present(piece[name]) and is_present(item.get(name, ABSENT_MEMBER))]
    if "data" in both or ("id" in both and bytes(piece["id"]) != bytes(item["id"])):
        return False
    has_text = any(bytes(piece.get(name, ABSENT_MEMBER)) not in {b"", b"null", b'""'} for name in TEXT_MEMBERS)
    return not (has_text and is_present(item.get("signature", ABSENT_MEMBER)))
