"""What a request said that the upstream's format cannot say."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.json import echo

MAX_HEADER_BYTES = 1024
MAX_NAME_CHARACTERS = 80

_INDEX = re.compile(r"\[\d+\]")
_NOT_A_NAME = re.compile(r"[^\w.$:-]", re.ASCII)


@dataclass(slots=True)
class Report:
    """Fields that were dropped or changed on the way to an upstream, by the names their callers used."""

    dropped: dict[str, str | None] = field(
        default_factory=dict
    )  # name -> the value sent instead, None where nothing was
    times: dict[str, int] = field(default_factory=dict)  # name -> how often it was dropped

    def drop(self, name: str, instead: str | None = None) -> None:
        """Note one field that is not said, or is said as `instead`."""
        self.dropped[name] = instead
        self.times[name] = self.times.get(name, 0) + 1

    def restate(self, name: str, instead: str) -> None:
        """Note the final value of a field that may have been changed once already, which counts as one change."""
        self.dropped[name] = instead
        self.times.setdefault(name, 1)

    @property
    def lost(self) -> int:
        """Number of fields that were not said as they were written."""
        return len(self.dropped)

    def rename(self, name_of: Callable[[str], str]) -> None:
        """Put the names into the words of the caller's format."""
        dropped, times = self.dropped, self.times
        self.dropped, self.times = {}, {}
        for name, instead in dropped.items():
            renamed = name_of(name)
            self.dropped[renamed] = instead
            self.times[renamed] = self.times.get(renamed, 0) + times[name]

    def header(self) -> str:
        """Value of `x-umg-dropped`: `seed, temperature=1, strict x9`, at most 1 KiB, "" when nothing was dropped.

        Fields that differ only by their place in a list are one entry with a count. Entries that do not fit are counted
        at the end: `+2`.
        """
        entries = dict[str, int]()
        for name, instead in self.dropped.items():
            label = header_name(name)
            entry = label if instead is None else f"{label}={instead}"
            entries[entry] = entries.get(entry, 0) + self.times[name]
        left_out, shown, size = 0, list[str](), 0
        for entry, count in entries.items():
            counted = f"{entry} x{count}" if count > 1 else entry
            size += len(counted) + 2
            if size > MAX_HEADER_BYTES - 16:
                left_out += 1
            else:
                shown.append(counted)
        return ", ".join([*shown, f"+{left_out}"] if left_out else shown)

    def refuse(self) -> None:
        """For `x-umg-strict`: raise UmgError(UNTRANSLATABLE) when anything was dropped."""
        if self.dropped:
            name, lost = next(iter(self.dropped)), self.header()
            if name != header_name(name):
                lost += f" (`{name}`)"
            message = f"the provider of this model cannot be told: {lost}; leave it out, or send no x-umg-strict"
            raise UmgError(pb.ERROR_REASON_UNTRANSLATABLE, message, field=name)


def header_name(path: str) -> str:
    """Name of a field for a header: its path without list indexes, in ASCII, cut when it is long.

    Names of unknown fields are the caller's own and may hold anything.
    """
    return _NOT_A_NAME.sub("_", _INDEX.sub("", path))[:MAX_NAME_CHARACTERS]


def foreign(opaque: pb.OpaquePart, at: str) -> UmgError:
    """For a block that only another format knows."""
    kind = echo(opaque.type) or "of no type"
    problem = f"`{kind}` of the {opaque.format} format cannot be said to this model's provider"
    message = f"`{at}`: {problem}; leave it out or choose another model"
    return UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=at)


def leaves_out(opaque: pb.OpaquePart, report: Report) -> bool:
    """Return whether an upstream of another format leaves the opaque part out. One that the model may do without is
    reported by its type.
    """
    if opaque.handling == pb.OPAQUE_HANDLING_OPTIONAL:
        report.drop(opaque.type)
    return opaque.handling != pb.OPAQUE_HANDLING_UNSPECIFIED


def untranslatable(at: str, problem: str) -> UmgError:
    """For what the target cannot say and the meaning would change without."""
    return UmgError(pb.ERROR_REASON_UNTRANSLATABLE, f"`{at}`: {problem}", field=at)


def unknown_part(at: str) -> UmgError:
    """For a kind of part that is newer than this build."""
    message = f"{at}: this kind of part is not known here; leave it out"
    return UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=at)


def no_role(at: str) -> UmgError:
    """For a message that does not say whose it is."""
    return UmgError(pb.ERROR_REASON_MISSING_FIELD, f"{at}.role: say who speaks", field=f"{at}.role")
