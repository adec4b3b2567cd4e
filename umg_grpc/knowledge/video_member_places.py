"""Places of input media, size and sound in the bodies of video models, where models of one protocol differ by their id.
Of the rows of `data/video_places.json` that match an id the first applies; the last row of a series, for its newest
models, is also that of ids which no row names. Pure: no I/O and no clock.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows

Medium: TypeAlias = Literal["first_frame", "last_frame", "reference_image", "video", "audio"]
"""Input of a model. `video`: a reference, a clip to continue or a video to edit; the model determines which."""
MEDIA_ITEM = "media/"
EACH_ITEM = "[]"


class VideoPlaces(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: places of the input in the bodies of some models of one protocol."""

    protocol: str
    models: str
    """Pattern of whole model ids in lower case, without a path before them (`vendor/`)."""
    path: str = ""
    """Path of submissions; "" for the usual one of the protocol."""
    media: Mapping[Medium, str] = {}
    """Medium -> its place: a member, a list (`reference_urls[]`), or the type of an item in a list (`media/video`). The
    models do not take other media.
    """
    one_image: Literal["first_frame", "reference_image"] = "first_frame"
    """Meaning of an image without a role that is the only one."""
    size: Literal["pixels", "tier", "tier_with_image"] = "tier"
    """Whether a size is stated in pixels or by a tier (`720P`), for some models only beside an image."""
    ratio: bool = False
    """Whether the aspect ratio of a tier can be stated; otherwise it is that of the image or the video."""
    sound: Literal["switched", "always", "never"] = "switched"
    without: tuple[str, ...] = ()
    """Other parameters, by their canonical names, that the models do not have."""
    source: str
    as_of: str


VIDEO_PLACES = tuple(read_rows("video_places", VideoPlaces))


@lru_cache(maxsize=1024)
def video_places(protocol: str, model: str) -> VideoPlaces:
    """Return the row of a provider's model. Raise LookupError for a protocol without rows."""
    name = model.rpartition("/")[2].lower()
    for row in VIDEO_PLACES:
        if row.protocol == protocol and re.fullmatch(row.models, name):
            return row
    raise LookupError(protocol)
