"""Encoding of prompt and media as the `content` array of the protocols `vidD` and `vidG`."""

from collections.abc import Collection, Mapping

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.dropped_fields_report import untranslatable
from umg_grpc.wire.video.content_array_items import ITEM_KINDS, ITEM_ROLES
from umg_grpc.wire.video.provider_task_types import Submission
from umg_grpc.wire.video.providers.media_encoding import address_or_data_url, at
from umg_grpc.wire.video.providers.request_encoding import prompt_of

ITEM_TYPES = {kind: name for name, kind in ITEM_KINDS.items()}
ROLE_NAMES = {role: name for name, role in ITEM_ROLES.items()}
REFERENCE_ROLES = {kind: f"reference_{name.removesuffix('_url')}" for name, kind in ITEM_KINDS.items()}
"""Kind of medium -> role for media without a role, if a submission has several media."""


def content_items(
    submission: Submission,
    *,
    suffix: str = "",
    schemes: Collection[str],
    only_urls: Mapping["pb.VideoMediaKind.ValueType", str],
) -> list[JsonObject]:
    """Return the items of `content` with the prompt and media of a submission. `suffix`: text appended to the prompt;
    `schemes`: accepted URL schemes; `only_urls`: kind of medium accepted only as URL -> its name in errors.
    """
    prompt = f"{prompt_of(submission)}{suffix}".strip()
    items: list[JsonObject] = [{"type": "text", "text": prompt}] if prompt else []
    media = submission.request.parameters.media
    for position, medium in enumerate(media):
        if medium.kind in only_urls and medium.WhichOneof("source") == "data":
            problem = f"this model's provider accepts {only_urls[medium.kind]} by its URL only; send an https URL"
            raise untranslatable(at(position), problem)
        kind = ITEM_TYPES.get(medium.kind)
        if kind is None or medium.role == pb.VIDEO_MEDIA_ROLE_STATIC_MASK:
            raise untranslatable(at(position), "this model's provider accepts no media of this kind; leave it out")
        item: JsonObject = {"type": kind, kind: {"url": address_or_data_url(medium, position, schemes)}}
        if role := ROLE_NAMES.get(medium.role):
            item["role"] = role
        elif len(media) > 1 or medium.kind != pb.VIDEO_MEDIA_KIND_IMAGE:
            item["role"] = REFERENCE_ROLES[medium.kind]
        items.append(item)
    return items
