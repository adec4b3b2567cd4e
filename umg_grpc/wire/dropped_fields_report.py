"""Report of the fields of a request that the provider's format cannot express, for the header `x-umg-dropped` and
strict mode.
"""

import re
from collections.abc import Callable

import msgspec

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.error_field_paths import body_path
from umg_grpc.wire.core.json import echo

MAX_HEADER_BYTES = 1024
MAX_NAME_CHARACTERS = 80

_INDEX = re.compile(r"\[\d+\]")
_INVALID_CHARACTER = re.compile(r"[^\w.$:-]", re.ASCII)


class Report(msgspec.Struct, eq=False):
    """Fields of one request that were dropped or changed on the way to a provider, by the names that the caller
    used.
    """

    dropped: dict[str, str | None] = {}
    """Name -> the value sent instead, None for a dropped field."""
    times: dict[str, int] = {}
    """Name -> number of times it was dropped."""
    limits: int = 0
    """Number of limits of the gateway among them."""

    def drop(self, name: str, instead: str | None = None) -> None:
        """Record that a field is not sent to the provider, or is sent as `instead`."""
        self.dropped[name] = instead
        self.times[name] = self.times.get(name, 0) + 1

    def record_final(self, name: str, instead: str) -> None:
        """Record the final value of a field. With earlier changes of the field this counts as one change."""
        self.dropped[name] = instead
        self.times.setdefault(name, 1)

    def limit(self, name: str, value: str) -> None:
        """Record a limit that the gateway sets for every provider, unless a lower limit for this provider is
        recorded.
        """
        if name not in self.dropped:
            self.drop(name, value)
            self.limits += 1

    @property
    def lost(self) -> int:
        """Number of fields that the provider does not get as the caller wrote them, because of its format or
        its rules.
        """
        return len(self.dropped) - self.limits

    def rename(self, name_of: Callable[[str], str]) -> None:
        """Replace the canonical field names in the report by the names in the caller's format."""
        dropped, times = self.dropped, self.times
        self.dropped, self.times = {}, {}
        for name, instead in dropped.items():
            renamed = name_of(name)
            self.dropped[renamed] = instead
            self.times[renamed] = self.times.get(renamed, 0) + times[name]

    def entries(self) -> dict[str, int]:
        """Return the entries of the report, `seed` or `temperature=1`, with the number of their fields. Fields that
        differ only by list indexes are one entry.
        """
        entries = dict[str, int]()
        for name, instead in self.dropped.items():
            label = header_name(name)
            entry = label if instead is None else f"{label}={instead}"
            entries[entry] = entries.get(entry, 0) + self.times[name]
        return entries

    def header(self) -> str:
        """Return the value of `x-umg-dropped`: `seed, temperature=1, strict x9`, at most 1 KiB, "" when nothing was
        dropped.

        An entry of several fields has a count. Entries that do not fit are counted at the end: `+2`.
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
        """Raise UmgError(UNTRANSLATABLE) if any field was dropped, as `x-umg-strict` requires. `wire_path`: converts a
        canonical path if the report has names of the caller's body.
        """
        if self.dropped:
            name, dropped = next(iter(self.dropped)), self.header()
            if name != header_name(name):
                dropped += f" (`{name}`)"
            message = f"the provider of this model cannot be told: {dropped}; leave it out, or send no x-umg-strict"
            path = name if wire_path is None else body_path(name, wire_path)
            raise UmgError(pb.ERROR_REASON_UNTRANSLATABLE, message, field=path)


def header_name(path: str) -> str:
    """Return the name of a field for a header: its path without list indexes, in ASCII, at most `MAX_NAME_CHARACTERS`.

    Names of unknown fields are the caller's own and may contain any character.
    """
    return _INVALID_CHARACTER.sub("_", _INDEX.sub("", path))[:MAX_NAME_CHARACTERS]


def foreign(opaque: pb.OpaquePart, at: str) -> UmgError:
    """Return the error for an opaque block (raw JSON of one format), which only a provider of that format accepts."""
    kind = echo(opaque.type) or "of no type"
    problem = f"`{kind}` of the {opaque.format} format cannot be said to this model's provider"
    message = f"`{at}`: {problem}; leave it out or choose another model"
    return UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=at)


NOTHING_LEFT = "nothing of them can be said; send results together with the calls that they answer"


def omits(opaque: pb.OpaquePart, report: Report) -> bool:
    """Return whether a provider of another format can do without an opaque part (raw JSON of one format). If so, the
    part is recorded in the report by its type.
    """
    if opaque.handling == pb.OPAQUE_HANDLING_OPTIONAL:
        report.drop(opaque.type)
    return opaque.handling != pb.OPAQUE_HANDLING_UNSPECIFIED


def untranslatable(at: str, problem: str) -> UmgError:
    """Return the error for a part of a request that changes its meaning and that the provider's format cannot
    express.
    """
    return UmgError(pb.ERROR_REASON_UNTRANSLATABLE, f"`{at}`: {problem}", field=at)


def unknown_part(at: str) -> UmgError:
    """Return the error for a part of a kind that is newer than this build."""
    message = f"{at}: this kind of part is not known here; leave it out"
    return UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=at)


def no_role(at: str) -> UmgError:
    """Return the error for a message without a role."""
    return UmgError(pb.ERROR_REASON_MISSING_FIELD, f"{at}.role: say who speaks", field=f"{at}.role")
