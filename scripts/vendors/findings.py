"""Findings of the comparison with vendors, and the list of findings that are deliberately not handled."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
from msgspec import Struct

IGNORED = Path(__file__).with_name("ignored.json")


class Finding(Struct, frozen=True, order=True):
    """Fact of a vendor that the gateway does not have."""

    group: str
    """Kind of the finding, for example `request members`."""
    source: str
    """Package, or registry, that states it, for example `openai, chat`."""
    name: str
    """The new thing: a member, a value, an id, or a version."""
    edit: str
    """Place where the gateway would have it."""


class Ignored(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Findings that are deliberately not handled. All texts but the reason are patterns with `*` for any text."""

    group: str = "*"
    source: str = "*"
    names: list[str]
    reason: str

    def holds(self, finding: Finding) -> bool:
        """Return whether the row is about the finding."""
        if not fnmatchcase(finding.group, self.group) or not fnmatchcase(finding.source, self.source):
            return False
        return any(fnmatchcase(finding.name, name) for name in self.names)


def ignored_rows(path: Path = IGNORED) -> list[Ignored]:
    """Return the rows of the list. Raise msgspec.ValidationError for an unknown or missing member."""
    return msgspec.json.decode(path.read_bytes(), type=list[Ignored])


def unhandled(findings: Iterable[Finding], ignored: Sequence[Ignored]) -> list[Finding]:
    """Return the findings that no row is about, sorted and each once."""
    return sorted(finding for finding in set(findings) if not any(row.holds(finding) for row in ignored))


def as_text(findings: Sequence[Finding]) -> str:
    """Return findings as lines, grouped, each with the place to edit."""
    lines = list[str]()
    group = ""
    for finding in findings:
        if finding.group != group:
            lines += ["", f"{finding.group}:"] if group else [f"{finding.group}:"]
            group = finding.group
        lines.append(f"  {finding.source}: {finding.name} -> {finding.edit}")
    return "\n".join(lines or ["nothing new"])
