"""Report of fields that the provider's format cannot express, for the header `x-umg-dropped` and for strict mode."""

import re
from collections.abc import Callable

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.caller_field_paths import body_path
from umg_grpc.wire.core.json_decoding import echo

MAX_HEADER_BYTES = 1024
MAX_NAME_CHARACTERS = 80

_INDEX = re.compile(r"\[\d+\]")
_ENTRY = re.compile(
    r"(?P<name>[\w.$:-]{1,80})(?:=(?P<instead>[\x20-\x2b\x2d-\x7e]{0,80}?))?(?: x(?P<count>\d{1,6}))?", re.ASCII
)
"""Entry of the header, as `Report.header` writes it."""
_INVALID_CHARACTER = re.compile(r"[^\w.$:-]", re.ASCII)


OF_TURNS = frozenset(
    {
        *("messages", "messages.role", "messages.reasoning", "role", "name", "phase"),
        *("reasoning", "state", "thought", "refusal", "citations", "detail", "title", "context", "citable", "origin"),
        *("tool_call", "tool_result", "is_error", "call_id", "arguments", "server_tool_call", "server_tool_result"),
    }
)
"""Names of losses that concern single turns of a conversation."""


class Report(msgspec.Struct, eq=False):
    """Collector of one request's fields that are not sent to the provider, or are sent with another value. Fields have
    canonical names (`max_output_tokens`) until `rename` replaces them by the caller's names.
    """

    dropped: dict[str, str | None] = {}  # field name -> the value sent instead; None for a field that is not sent
    times: dict[str, int] = {}  # field name -> how often it was dropped, for example once in each message
    protocol: str = ""
    """Protocol of the request in place of the channel's usual one, with the reason; "" for the usual one."""
    limits: int = 0  # entries in `dropped` that are limits of the gateway itself, not losses in translation
    of_turns: int | None = None
    """Number of names in `dropped` that were in `OF_TURNS` when they were renamed; None before."""
    awaited_headers: tuple[str, ...] = ()  # headers of the provider's response that are forwarded to the caller
    response_headers: dict[str, str] = {}  # `awaited_headers` that the response has
    performed: set[str] = set()
    """Names in `dropped` that strict mode ignores: the gateway has their effect, or the provider no use for them."""

    def drop(self, name: str, instead: str | None = None) -> None:
        """Record that a field is not sent to the provider, or is sent with the value `instead`."""
        self.dropped[name] = instead
        self.times[name] = self.times.get(name, 0) + 1

    def add_header(self, header: str) -> None:
        """Record the changes in the `header` of another gateway, the provider, except to fields that this one changed.
        Other text has no effect.
        """
        for entry in header[:MAX_HEADER_BYTES].split(", "):
            if (stated := _ENTRY.fullmatch(entry)) is not None and stated["name"] not in self.dropped:
                self.dropped[stated["name"]] = stated["instead"]
                self.times[stated["name"]] = int(stated["count"] or 1)

    def record_final(self, name: str, instead: str) -> None:
        """Record the final value of a field. Unlike `drop`, this does not count a recorded field again."""
        self.dropped[name] = instead
        self.times.setdefault(name, 1)

    def forget(self, name: str) -> None:
        """Remove the record of a change without effect, for example because another member has the value."""
        self.dropped.pop(name, None)
        self.times.pop(name, None)

    def limit(self, name: str, value: str) -> None:
        """Record that the gateway lowers a field for every provider, unless this one has a lower limit."""
        if name not in self.dropped:
            self.drop(name, value)
            self.limits += 1

    def perform(self, name: str) -> None:
        """Record that the field `name` is not sent to the provider because the gateway itself implements it."""
        self.drop(name, "by the gateway")
        self.performed.add(name)

    def omit(self, name: str) -> None:
        """Record that a member is not sent because only another vendor reads it, so that nothing is lost."""
        self.drop(name)
        self.performed.add(name)

    @property
    def lost(self) -> int:
        """Number of fields that the provider's format or model cannot accept. The gateway's own limits do not count."""
        return len(self.dropped) - self.limits - len(self.performed)

    @property
    def lost_for_choice(self) -> int:
        """Number of lost fields, for the comparison of channels and protocols. Losses in single turns do not count:
        else a conversation would change its provider, and lose its prompt cache, after the first failed tool.
        """
        of_turns = len(OF_TURNS.intersection(self.dropped)) if self.of_turns is None else self.of_turns
        return max(0, self.lost - of_turns)

    def rename(self, name_of: Callable[[str], str]) -> None:
        """Replace each field name by `name_of(name)`, for example canonical names by those of the caller's format."""
        dropped, times = self.dropped, self.times
        if self.of_turns is None:
            self.of_turns = len(OF_TURNS.intersection(dropped))
        self.dropped, self.times = {}, {}
        for name, instead in dropped.items():
            renamed = name_of(name)
            self.dropped[renamed] = instead
            self.times[renamed] = self.times.get(renamed, 0) + times[name]
        self.performed = {name_of(name) for name in self.performed}

    def entries(self) -> dict[str, int]:
        """Return field (`seed`, `temperature=1`) -> number of times. Fields that differ by list indexes are one."""
        entries = dict[str, int]()
        for name, instead in self.dropped.items():
            label = header_name(name)
            entry = label if instead is None else f"{label}={instead}"
            entries[entry] = entries.get(entry, 0) + self.times[name]
        return entries

    def header(self) -> str:
        """Return the header `x-umg-dropped`, for example `seed, temperature=1, strict x9` (`strict` in nine positions).
        "" if nothing was dropped. It has at most 1 KiB; `+2` at its end counts the entries that do not fit.
        """
        if not self.dropped:
            return ""
        omitted, shown, size = 0, list[str](), 0
        for entry, count in self.entries().items():
            counted = f"{entry} x{count}" if count > 1 else entry
            size += len(counted) + 2
            if size > MAX_HEADER_BYTES - 16:
                omitted += 1
            else:
                shown.append(counted)
        return ", ".join([*shown, f"+{omitted}"] if omitted else shown)

    def refuse(self, wire_path: Callable[[str], str] | None = None) -> None:
        """Raise UmgError(UNTRANSLATABLE) about the first recorded field whose effect is lost (strict mode,
        `x-umg-strict`), if any. `wire_path`: converts canonical paths to paths in the caller's body; None keeps them.
        """
        if (name := next((name for name in self.dropped if name not in self.performed), None)) is not None:
            dropped = self.header()
            if name != header_name(name):
                dropped += f" (`{name}`)"
            problem = "this request cannot be sent unchanged to the provider of this model"
            message = f"{problem}: {dropped}; leave that out, or send no x-umg-strict"
            path = name if wire_path is None else body_path(name, wire_path)
            raise UmgError(pb.ERROR_REASON_UNTRANSLATABLE, message, field=path)


def header_name(path: str) -> str:
    """Return a field's name for a header: its path without list indexes, at most `MAX_NAME_CHARACTERS` long. Characters
    other than ASCII letters, digits and `_.$:-` become `_`, since callers choose names.
    """
    return _INVALID_CHARACTER.sub("_", _INDEX.sub("", path))[:MAX_NAME_CHARACTERS]


def foreign(opaque: pb.OpaquePart, at: str) -> UmgError:
    """Return UNSUPPORTED_FIELD for an opaque part (raw JSON of one wire format) that is not the provider's format."""
    kind = echo(opaque.type) or "of no type"
    problem = f"`{kind}` of the {opaque.format} format cannot be translated for this model's provider"
    message = f"`{at}`: {problem}; leave it out or choose another model"
    return UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=at)


NOTHING_LEFT = "no part of them can be translated; send results together with the calls that they answer"


def omits(opaque: pb.OpaquePart, report: Report) -> bool:
    """Return whether an opaque part may be left out for another format. An optional one is reported by its type."""
    if opaque.handling == pb.OPAQUE_HANDLING_OPTIONAL:
        report.drop(opaque.type)
    return opaque.handling != pb.OPAQUE_HANDLING_UNSPECIFIED


def untranslatable(at: str, problem: str) -> UmgError:
    """Return UNTRANSLATABLE for a part whose loss would change the meaning. `problem`: text for the caller."""
    return UmgError(pb.ERROR_REASON_UNTRANSLATABLE, f"`{at}`: {problem}", field=at)


def unknown_part(at: str) -> UmgError:
    """Return the error UNSUPPORTED_FIELD for a part of a kind that this version of the gateway does not support."""
    message = f"{at}: this kind of part is not known here; leave it out"
    return UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=at)


def no_role(at: str) -> UmgError:
    """Return the error MISSING_FIELD for a message without a role. `at`: canonical path of the message."""
    return UmgError(pb.ERROR_REASON_MISSING_FIELD, f"{at}.role: say who speaks", field=f"{at}.role")
