"""Rules of vendors for their image and video models: parameters that a model lacks, and values that it accepts. A row
of `data/media_models.json` applies to models of one protocol; of the rows that match an id the first applies. The last
row of a vendor has its newest behaviour, which newer models inherit. Pure: no I/O and no clock.
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
"""Input images that conditions name like parameters: true for a request with the image, else false."""


class Condition(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rule about two parameters: with some values of the one, the other has to have one of its values."""

    parameter: str
    """A parameter, or one of `FRAME_ROLES`."""
    values: tuple[Value, ...]
    """Values of the parameter at which the rule applies, of texts in any case."""
    needs: str
    """The other one, likewise."""
    among: tuple[Value, ...]
    default: Value | None = None
    """Value that the other one has at the vendor if it is left out; None for a value that the vendor accepts."""


class Pixels(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rule about a size `<width>x<height>` that is not one of the accepted values."""

    step: int
    """Number of which both sides are multiples."""
    ratio: int
    """The largest quotient of the longer side and the shorter one."""
    side: int
    """The largest side."""
    least: int
    """The least number of pixels."""
    most: int

    def problem(self, width: int, height: int) -> str:
        """Return the limit that a size exceeds, as an instruction; "" for a size within all limits."""
        longer, shorter = max(width, height), min(width, height)
        if width % self.step or height % self.step:
            return f"both sides must be multiples of {self.step}"
        if longer > self.ratio * shorter:
            return f"the longer side may be at most {self.ratio} times the shorter one"
        if longer > self.side:
            return f"a side may have at most {self.side} pixels"
        return "" if self.least <= width * height <= self.most else f"expected {self.least} to {self.most} pixels"


class MediaModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Row of the table: rules of a vendor for some of its models. Parameters have their canonical names."""

    protocol: str
    models: str
    """Pattern of whole model ids in lower case, without the path before them (`vendor/`)."""
    api: str = ""
    """Variant of the protocol in which the models are called; "" for the usual one."""
    without: tuple[str, ...] = ()
    """Parameters that the models do not have: they are left out and reported."""
    members: tuple[str, ...] = ()
    """Members of the provider's body that these models have beyond those of all models of the protocol."""
    values: Mapping[str, tuple[str | int, ...]] = {}
    """Parameter -> its accepted values, of texts in any case."""
    ranges: Mapping[str, tuple[int, int]] = {}
    """Parameter -> the least and the largest accepted number."""
    pixels: Pixels | None = None
    """Rule about sizes beside those of `values`; None if only these are accepted, or any."""
    conditions: tuple[Condition, ...] = ()
    most_media: Mapping[Medium, int] = {}
    """Kind of input media -> the largest number of them."""
    default_seconds: int | None = None
    """Length of a video whose request states none; None if it is not documented."""
    source: str
    as_of: str
    """Date on which the source was read."""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.models)

    def matches(self, model: str) -> bool:
        """Return whether the row applies to a model id in lower case, without the path before it."""
        return self._pattern.fullmatch(model) is not None


MEDIA_MODELS = tuple(read_rows("media_models", MediaModel))
"""Rows of the data file, in its order."""


def is_among(value: object, accepted: Collection[Value]) -> bool:
    """Return whether a value is one of the accepted values of a row; texts match in any case."""
    if isinstance(value, str):
        return value.lower() in {str(choice).lower() for choice in accepted}
    return value in accepted


@lru_cache(maxsize=1024)
def media_model(protocol: str, model: str) -> MediaModel | None:
    """Return the row of a vendor's model in a protocol; None for a model without rules, whose vendor checks all."""
    name = model.rpartition("/")[2].lower()
    return next((row for row in MEDIA_MODELS if row.protocol == protocol and row.matches(name)), None)


@lru_cache(maxsize=1024)
def default_seconds(model: str) -> int | None:
    """Return the length of a video of a vendor's model whose request states none; None if it is not documented."""
    name = model.rpartition("/")[2].lower()
    return next((row.default_seconds for row in MEDIA_MODELS if row.default_seconds and row.matches(name)), None)
