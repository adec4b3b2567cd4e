"""Assignment of the images in a submission to roles: first frame, last frame, references."""

from dataclasses import dataclass, field

from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_task_types import Submission

Numbered = tuple[int, pb.VideoMedia]
"""Medium of a submission with its position in the list of media, for errors."""

FIRST_FRAME, LAST_FRAME = pb.VIDEO_MEDIA_ROLE_FIRST_FRAME, pb.VIDEO_MEDIA_ROLE_LAST_FRAME
REFERENCE_IMAGE, STATIC_MASK = pb.VIDEO_MEDIA_ROLE_REFERENCE_IMAGE, pb.VIDEO_MEDIA_ROLE_STATIC_MASK


@dataclass
class Inputs:
    """Media of a submission, sorted by kind and role."""

    first: Numbered | None = None
    last: Numbered | None = None
    references: list[Numbered] = field(default_factory=list)
    masks: list[Numbered] = field(default_factory=list)
    videos: list[Numbered] = field(default_factory=list)
    audio: list[Numbered] = field(default_factory=list)


def present(*images: Numbered | None) -> list[Numbered]:
    """Return the images that are not None, in their order."""
    return [image for image in images if image is not None]


def inputs_of(submission: Submission, *, pairs: bool = False, references: bool = False) -> Inputs:
    """Return the media of a submission by kind and role. A single image without a role is the first frame; of several,
    each is a reference. With `pairs`, two of them are the first and last frame; with `references`, all are references.
    """
    found = Inputs()
    plain: list[Numbered] = []
    for numbered in enumerate(submission.request.parameters.media):
        media = numbered[1]
        if media.kind == pb.VIDEO_MEDIA_KIND_VIDEO:
            found.videos.append(numbered)
        elif media.kind == pb.VIDEO_MEDIA_KIND_AUDIO:
            found.audio.append(numbered)
        elif media.role == FIRST_FRAME:
            found.first = numbered
        elif media.role == LAST_FRAME:
            found.last = numbered
        elif media.role == REFERENCE_IMAGE:
            found.references.append(numbered)
        elif media.role == STATIC_MASK:
            found.masks.append(numbered)
        else:
            plain.append(numbered)
    if references:
        found.references += plain
    elif len(plain) == 1 and found.first is None and not found.references:
        found.first = plain[0]
    elif len(plain) == 2 and pairs and found.first is None and found.last is None and not found.references:
        found.first, found.last = plain
    else:
        found.references += plain
    return found
