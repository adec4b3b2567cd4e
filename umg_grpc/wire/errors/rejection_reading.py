"""Reading of rejections: provider errors that name a member which the gateway could leave out or send differently.

Only structured members of an error (`loc`, `param` with a `code`) are read, and messages that match a known wording as
a whole: any other text may be a caller's, echoed by the provider. The wordings are in
`knowledge/data/refusal_wordings.json`.
"""

import re
from functools import cache
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.dropped_field_losses import LOSS_MEMBERS
from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.wire.errors.error_body_reading import RELAY_PREFIX

Kind = Literal["member", "value", "role", "keyword", "limit", "limit_exclusive"]
"""Part of the request that is rejected: a whole member; its value; a role of a message; a keyword of a JSON schema. Or
a number above a limit that is stated (`limit_exclusive`: the first number that is too high).
"""
REFUSAL_STATUSES = frozenset({400, 422})
PATH_STATUSES = frozenset({404, 405})
"""Statuses with which a provider may state that it serves nothing at the path of a protocol."""
UNSUPPORTED_CODES = {"unsupported_parameter": "member", "unknown_parameter": "member", "unsupported_value": "value"}
MAX_BODY_BYTES = 1 << 16
MAX_MESSAGE_CHARACTERS = 4000
MAX_REFUSED = 8
MAX_DEPTH = 6
"""Maximum depth of errors nested in messages of errors, as relays send them."""


class Refused(NamedTuple):
    """Part of a request that a provider rejected."""

    member: str
    """Dotted path in the provider's body, without indexes, in the gateway's spelling; "" if `fields` is set instead."""
    kind: Kind
    value: str = ""
    """Rejected value, as the error or the wording states it; "" for any value."""
    allowed: tuple[str, ...] = ()
    limit: int | None = None
    fields: tuple[str, ...] = ()
    """Canonical fields that the wording is about, instead of a member."""
    quirks: Quirks | None = None
    """Restriction that the wording states; None if it is derived from member and kind."""
    message: str = ""
    """Message of the provider that matched a wording; "" for structured members of an error."""


class Wording(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table of wordings for rejections."""

    pattern: str
    """Pattern of a whole message. `<member>`, `<last>`, `<value>`, `<allowed>` and `<limit>` mark parts to read."""
    kind: Kind
    member: str = ""
    """Canonical fields that the wording is about, separated by commas, if the pattern has no `<member>`."""
    value: str = ""
    """Value that the wording is about, if the pattern has no `<value>`."""
    quirks: Quirks | None = None
    vendors: str
    source: str
    as_of: str


PLACE_PATTERNS = {
    "<member>": r"(?P<member>[A-Za-z_][\w.\[\]]{0,120})",
    "<last>": r"(?P<last>\w{1,60})",
    "<value>": r"(?P<value>['\"`]?[\w.+-]{1,40}['\"`]?)",
    "<allowed>": r"(?P<allowed>[\[\]'\"`\w, ]{1,300})",
    "<limit>": r"[`']?(?P<limit>\d{1,9})[`']?",
}
TRAILING_TEXT = re.compile(
    r" \(request id: \w{1,64}\)|\(traceid: \w{1,64}\)|\.? Request id: \w{1,80}| \(reset after \d+s\)"
    r"| at line \d+ column \d+| \(type=\w{1,40}\)"
)
ALLOWED_WORD = re.compile(r"\w+")
PATH_INDEX = re.compile(r"\[\d*\]|\.\d+(?=\.|$)")
MESSAGE_ROLES = frozenset({"assistant", "user", "system", "tool", "function", "developer"})
CAPITAL_LETTER = re.compile(r"(?<!^)[A-Z]")
NESTING_MEMBERS = ("generationConfig.", "inferenceConfig.", "additionalModelRequestFields.")
"""Members of bodies that errors omit when they name a member inside them."""


def read_refusal(protocol: str, status: int, body: bytes) -> list[Refused]:
    """Return the parts of the request that a provider's error rejects. [] if it rejects none, or if a part of the error
    is not understood. `protocol`: wire format of the provider.
    """
    if status not in REFUSAL_STATUSES or len(body) > MAX_BODY_BYTES:
        return []
    try:
        value = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return []
    refused = _read_value(protocol, value, 0) or []
    return refused if len(refused) <= MAX_REFUSED else []


def _read_value(protocol: str, value: object, depth: int) -> list[Refused] | None:
    """Return the rejected parts that an error names; None if the error is not understood."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, list):
        if value and isinstance(value[0], dict) and "error" in value[0]:
            return _read_value(protocol, value[0], depth + 1)
        return _read_violations(protocol, value)
    if isinstance(value, str):
        return _read_text(protocol, value, depth)
    if not isinstance(value, dict):
        return None
    for name in ("error", "detail", "message", "msg", "metadata", "raw"):
        if (found := value.get(name)) and (refused := _read_value(protocol, found, depth + 1)) is not None:
            return refused
    return _read_param(protocol, value, depth)


def _read_param(protocol: str, error: dict[str, object], depth: int) -> list[Refused] | None:
    """Return the rejected part that the members `param` and `code` of an error name; None if it names none."""
    param, kind = error.get("param"), UNSUPPORTED_CODES.get(str(error.get("code")))
    if not isinstance(param, str):
        return None
    if kind is None:  # some relays put the message there
        return _read_text(protocol, param, depth) if " " in param else None
    member = known_member(protocol, param)
    return [Refused(member, "value" if kind == "value" else "member")] if member else None


def _read_violations(protocol: str, violations: list[object]) -> list[Refused] | None:
    """Return the rejected parts that a list of pydantic's violations names; None if one of them is not understood."""
    refused = list[Refused]()
    for violation in violations:
        if not isinstance(violation, dict):
            return None
        if violation.get("type") == "union_tag_invalid":  # its place is the message, not the role
            message = violation.get("msg")
            found = _read_line(protocol, message) if isinstance(message, str) else None
            if found is None or found.kind != "role":
                return None
            refused.append(found)
            continue
        if violation.get("type") != "extra_forbidden":
            return None
        loc = violation.get("loc")
        if not isinstance(loc, list):
            return None
        path = [step for step in loc if isinstance(step, str) and step != "body"]
        if len(path) > 2 and path[1] in MESSAGE_ROLES:  # the model of a message of this role
            del path[1]
        member = known_member(protocol, ".".join(path))
        if not member:
            return None
        refused.append(Refused(member, "member"))
    return list(dict.fromkeys(refused)) or None


def _read_text(protocol: str, text: str, depth: int) -> list[Refused] | None:
    """Return the rejected parts that a message names; None if one of its lines is not a known wording."""
    text = text[:MAX_MESSAGE_CHARACTERS].strip()
    while (before := RELAY_PREFIX.match(text)) is not None:
        text = text[before.end() :]
    while (after := _last(TRAILING_TEXT, text)) is not None:
        text = text[:after]
    text = text.strip()
    if text.startswith(("{", "[{")) and text.endswith(("}", "]")):
        try:
            inner = msgspec.json.decode(text)
        except ValueError:
            pass
        else:
            return _read_value(protocol, inner, depth + 1)
    refused = list[Refused]()
    for line in text.split("\n"):
        if (found := _read_line(protocol, line.strip())) is None:
            return None
        refused.append(found)
    return list(dict.fromkeys(refused))


def _last(pattern: re.Pattern[str], text: str) -> int | None:
    return next((found.start() for found in pattern.finditer(text) if found.end() == len(text)), None)


def _read_line(protocol: str, line: str) -> Refused | None:
    for wording, pattern in _wordings():
        if (found := pattern.fullmatch(line)) is None:
            continue
        parts = {name: part for name, part in found.groupdict().items() if part is not None}
        value = parts.get("value", wording.value).strip("'\"`")
        allowed = tuple(word for word in ALLOWED_WORD.findall(parts.get("allowed", "")) if word not in {"and", "or"})
        limit = int(parts["limit"]) if "limit" in parts else None
        if limit is not None and wording.kind == "limit_exclusive":
            limit -= 1
        fields = tuple(field.strip() for field in wording.member.split(",") if field)
        named, last = parts.get("member", "").rstrip("."), parts.get("last", "")
        if last and named.rpartition(".")[2] != last:
            named = f"{named}.{last}" if named else last
        member = known_member(protocol, named) if named else ""
        if not member and not fields:
            if named or not value:
                return None
            fields = ("reasoning.effort",)  # only a value is named
        return Refused(member, wording.kind, value, allowed, limit, fields, wording.quirks, line)
    return None


def known_member(protocol: str, name: str) -> str:
    """Return the member of a provider's body that an error names, in the gateway's spelling. "" for a member that the
    wire format does not have. Indexes, roles of messages and spellings (`presencePenalty`) are ignored.
    """
    known = LOSS_MEMBERS.get(protocol, {})
    path = PATH_INDEX.sub("", name.removeprefix("body."))
    first, _, rest = path.partition(".")
    if rest.partition(".")[0] in MESSAGE_ROLES:
        path = f"{first}.{rest.partition('.')[2]}"
    snake = CAPITAL_LETTER.sub(lambda letter: f"_{letter[0].lower()}", path)
    camel = re.sub(r"_([a-z])", lambda letter: letter[1].upper(), path)
    nested = (outer + spelling for outer in NESTING_MEMBERS for spelling in (camel, snake))
    return next((spelling for spelling in (path, snake, camel, *nested) if spelling in known), "")


@cache
def _wordings() -> list[tuple[Wording, re.Pattern[str]]]:
    return [(row, re.compile(_expanded(row.pattern))) for row in read_rows("refusal_wordings", Wording)]


def _expanded(pattern: str) -> str:
    """Return a row's pattern with its placeholders replaced. Of a placeholder that occurs twice, one is read."""
    for place, part in PLACE_PATTERNS.items():
        unnamed = re.sub(r"\?P<\w+>", "?:", part)
        head, found, tail = pattern.partition(place)
        if found:
            pattern = head + part + tail.replace(place, unnamed)
    return pattern
