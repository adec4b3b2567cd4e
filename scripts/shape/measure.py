"""Measure of the shape: a value, its limit, and the places that count."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Bound = Literal["at most", "at least", "only counted"]


@dataclass(frozen=True)
class Measure:
    """Value that is held to a limit. A ratchet is the value of today as a limit: each improvement lowers it."""

    name: str
    value: float
    limit: float = 0
    bound: Bound = "at most"
    ratchet: bool = False
    unit: str = ""
    places: Collection[str] = ()
    """Names that are printed where the limit is missed."""

    @property
    def holds(self) -> bool:
        """Whether the value is within its limit."""
        match self.bound:
            case "at most":
                return self.value <= self.limit
            case "at least":
                return self.value >= self.limit
            case "only counted":
                return True

    def line(self) -> str:
        """Return the measure as a line of the report, and a line for each place if it fails."""
        limit = "" if self.bound == "only counted" else f"{self.bound} {self.limit:g}{self.unit}"
        note = " (ratchet: the value of today)" if self.ratchet else ""
        mark = "ok  " if self.holds else "FAIL"
        text = f"{mark} {self.name:<52} {f'{self.value:g}{self.unit}':>7}  {limit or 'only counted'}{note}"
        return text if self.holds else "\n".join([text, *(f"       {place}" for place in sorted(self.places))])
