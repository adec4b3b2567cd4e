"""Vendors' rules for their image and video models: parameters that a model lacks, and values that it accepts. A row of
`data/media_models.json` applies to models of one protocol; the first row that matches an id applies. The last row of a
vendor is its newest behaviour, which newer models inherit. Pure: no I/O and no clock.
"""

import re
from collections.abc import Collection, Mapping
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows

Medium: TypeAlias = Literal["image", "video", "audio"]


Value: TypeAlias = bool | int | str

FRAME_ROLES = ("first_frame", "last_frame")
"""Input images that conditions treat as boolean parameters: true if the request has the image."""


class Condition(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rule about two parameters: if `parameter` has one of `values`, `needs` must have one of its values."""

    parameter: str
    """First parameter: the name of a parameter, or one of `FRAME_ROLES`."""
    values: tuple[Value, ...]
    """Values of the first parameter at which the rule applies; letter case is ignored."""
    needs: str
    """Second parameter: the name of a parameter, or one of `FRAME_ROLES`."""
    among: tuple[Value, ...]
    default: Value | None = None
    """Value that the vendor uses for the second parameter if it is left out; None if that value satisfies the rule."""


class Pixels(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rule about a size `<width>x<height>` that is not among the accepted values."""

    step: int
    """Number of pixels of which both sides must be multiples."""
    ratio: int
    """Largest accepted ratio of the longer side to the shorter one."""
    side: int
    """Largest accepted side in pixels."""
    least: int
    """Least accepted number of pixels."""
    most: int

    def problem(self, width: int, height: int) -> str:
        """Return the limit that a size violates, as an instruction; "" if it is within all limits."""
        longer, shorter = max(width, height), min(width, height)
        if width % self.step or height % self.step:
            return f"both sides must be multiples of {self.step}"
        if longer > self.ratio * shorter:
            return f"the longer side may be at most {self.ratio} times the shorter one"
        if longer > self.side:
            return f"a side may have at most {self.side} pixels"
        return "" if self.least <= width * height <= self.most else f"expected {self.least} to {self.most} pixels"


class MediaModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Row of the table: a vendor's rules for some of its models. Parameters have their canonical names."""

    protocol: str
    models: str
    """Pattern of the whole model id in lower case, without a path (`vendor/`)."""
    api: str = ""
    """Variant of the protocol by which the models are called; "" for the usual one."""
    without: tuple[str, ...] = ()
    """Parameters that the models do not have: they are left out and reported."""
    members: tuple[str, ...] = ()
    """Members of the provider's body that only these models have."""
    values: Mapping[str, tuple[str | int, ...]] = {}
    """Parameter -> accepted values; letter case is ignored."""
    ranges: Mapping[str, tuple[int, int]] = {}
    """Parameter -> least and largest accepted number."""
    pixels: Pixels | None = None
    """Rule about sizes outside `values`; None: only `values` are accepted, or any size if there are none."""
    conditions: tuple[Condition, ...] = ()
    most_media: Mapping[Medium, int] = {}
    """Kind of input media -> largest accepted number."""
    default_seconds: int | None = None
    """Length of a video whose request states none; None if the vendor does not document it."""
    source: str
    as_of: str

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.models)

    def matches(self, model: str) -> bool:
        return self._pattern.fullmatch(model) is not None


MEDIA_MODELS = tuple(read_rows("media_models", MediaModel))


def is_among(value: object, accepted: Collection[Value]) -> bool:
    """Return whether a value is one of the accepted values of a row; texts match in any case."""
    if isinstance(value, str):
        return value.lower() in {str(choice).lower() for choice in accepted}
    return value in accepted


@lru_cache(maxsize=1024)
def media_model(protocol: str, model: str) -> MediaModel | None:
    """Return the row of a vendor's model in a protocol; None for a model without rules, which the vendor checks."""
    name = model.rpartition("/")[2].lower()
    return next((row for row in MEDIA_MODELS if row.protocol == protocol and row.matches(name)), None)


@lru_cache(maxsize=1024)
def default_seconds(model: str) -> int | None:
    """Return the length of a video of a vendor's model whose request states none; None if it is not documented."""
    name = model.rpartition("/")[2].lower()
    return next((row.default_seconds for row in MEDIA_MODELS if row.default_seconds and row.matches(name)), None)
