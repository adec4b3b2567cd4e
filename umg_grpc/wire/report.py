"""What a request said that the upstream's format cannot say."""

from collections.abc import Callable
from dataclasses import dataclass, field

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb

MAX_HEADER_BYTES = 1024


@dataclass(slots=True)
class Report:
    """Fields that were dropped or changed on the way to an upstream, by the names their callers used."""

    dropped: dict[str, str | None] = field(
        default_factory=dict
    )  # name -> the value sent instead, None where nothing was
    unknown: int = 0  # fields that no table knows, so that their names may be anything
    first_unknown: str = ""  # path of the first of them, fit for a message

    def drop(self, name: str, instead: str | None = None) -> None:
        """Notes a known field that is not said, or is said as `instead`."""
        self.dropped[name] = instead

    @property
    def lost(self) -> int:
        """How many fields were not said as they were written."""
        return len(self.dropped) + self.unknown

    def rename(self, name_of: Callable[[str], str]) -> None:
        """Puts the names into the words of the caller's format."""
        self.dropped = {name_of(name): instead for name, instead in self.dropped.items()}

    def header(self) -> str:
        """`seed, temperature=1, +2`, at most 1 KiB: names that do not fit are counted with the unknown. "" when nothing
        was dropped.
        """
        if not self.dropped and not self.unknown:
            return ""
        entries = [name if instead is None else f"{name}={instead}" for name, instead in self.dropped.items()]
        unknown, shown, size = self.unknown, list[str](), 0
        for entry in entries:
            size += len(entry) + 2
            if size > MAX_HEADER_BYTES - 16:
                unknown += 1
            else:
                shown.append(entry)
        return ", ".join([*shown, f"+{unknown}"] if unknown else shown)

    def refuse(self) -> None:
        """For `x-umg-strict`: raises UmgError(UNTRANSLATABLE) when anything was dropped."""
        if self.dropped or self.unknown:
            name = next(iter(self.dropped), self.first_unknown or "an unknown field")
            lost = self.header()
            if self.first_unknown:
                lost += f" (`{self.first_unknown}`{' and others' if self.unknown > 1 else ''})"
            message = f"the provider of this model cannot be told: {lost}; leave it out, or send no x-umg-strict"
            raise UmgError(pb.ERROR_REASON_UNTRANSLATABLE, message, field=name)


def foreign(opaque: pb.OpaquePart, at: str) -> UmgError:
    """For a block that only another format knows."""
    kind = opaque.type or "of no type"
    problem = f"`{kind}` of the {opaque.format} format cannot be said to this model's provider"
    message = f"`{at}`: {problem}; leave it out or choose another model"
    return UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=at)


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
