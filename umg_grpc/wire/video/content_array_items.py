"""Decoding of `content` arrays in submissions of video tasks: texts, images, videos and audio with roles."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec
from msgspec import Raw

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import NonEmpty, echo, invalid, is_present, parse
from umg_grpc.wire.video.submission_body_reader import CreateBody, Members

Role: TypeAlias = "pb.VideoMediaRole.ValueType"

DRAFT_KIND = "draft_task"
ITEM_KINDS = {
    "image_url": pb.VIDEO_MEDIA_KIND_IMAGE,
    "video_url": pb.VIDEO_MEDIA_KIND_VIDEO,
    "audio_url": pb.VIDEO_MEDIA_KIND_AUDIO,
}
ITEM_ROLES: dict[str, Role] = {
    "first_frame": pb.VIDEO_MEDIA_ROLE_FIRST_FRAME,
    "last_frame": pb.VIDEO_MEDIA_ROLE_LAST_FRAME,
    "reference_image": pb.VIDEO_MEDIA_ROLE_REFERENCE_IMAGE,
    "reference_video": pb.VIDEO_MEDIA_ROLE_REFERENCE_VIDEO,
    "reference_audio": pb.VIDEO_MEDIA_ROLE_REFERENCE_AUDIO,
}
ROLES_D = {**ITEM_ROLES, "first_image": pb.VIDEO_MEDIA_ROLE_FIRST_FRAME, "last_image": pb.VIDEO_MEDIA_ROLE_LAST_FRAME}
ROLES_D_1 = {name: ITEM_ROLES[name] for name in ("first_frame", "last_frame", "reference_image")}
_KIND_OF_ROLE = {
    pb.VIDEO_MEDIA_ROLE_REFERENCE_VIDEO: pb.VIDEO_MEDIA_KIND_VIDEO,
    pb.VIDEO_MEDIA_ROLE_REFERENCE_AUDIO: pb.VIDEO_MEDIA_KIND_AUDIO,
}


def read_content(
    body: CreateBody,
    raw: Raw,
    at: str,
    roles: Mapping[str, Role],
    *,
    kinds: Mapping[str, "pb.VideoMediaKind.ValueType"] = ITEM_KINDS,
    takes_draft: bool = False,
    read_text: Callable[[str, str], str] = lambda text, _: text,
) -> None:
    """Decode a `content` array: its texts become the prompt of the request, its other items media.

    `raw`: JSON of the array; `at`: its path in the body; `roles`: word in the body -> role of a medium; `kinds`: type
    of an item -> kind of medium; `takes_draft`: whether an item may name the task of a draft; `read_text`: (text, path)
    -> text for the prompt. Raise UmgError for an unknown type or role, and for an item without its text or URL.
    """
    texts = []
    for position, item in enumerate(parse(list[Raw], raw, at)):
        path = f"{at}[{position}]"
        members = parse(Members, item, path)
        kind = parse(str, members["type"], f"{path}.type") if "type" in members else ""
        if kind == "text":
            given = members.get("text", Raw(b"null"))
            text = parse(str, given, f"{path}.text") if is_present(given) else ""
            texts.append(read_text(text, f"{path}.text"))
        elif kind in kinds:
            role = _role(members, path, roles, kinds[kind])
            body.medium(_url(members, kind, path), f"{path}.{kind}.url", kinds[kind], role)
        elif kind == DRAFT_KIND and takes_draft:
            draft = parse(Members, members.get(kind, Raw(b"null")), f"{path}.{kind}")
            body.set("draft_task_id", parse(NonEmpty, draft.get("id", Raw(b"null")), f"{path}.{kind}.id"), path)
        else:
            known = ", ".join(f"`{name}`" for name in ("text", *kinds))
            raise invalid(f"{path}.type", f"{echo(kind) or 'nothing'} is not one of its values; send one of {known}")
    prompt = "\n".join(text for text in texts if text.strip())
    if texts:
        body.set("prompt", prompt, at)


def _url(members: Members, kind: str, path: str) -> str:
    try:
        url = msgspec.json.decode(members.get(kind, b""), type=dict[str, Raw])["url"]
        text = msgspec.json.decode(url, type=str)
    except (ValueError, KeyError, RecursionError):
        text = ""
    if not text.strip():
        message, field = f"{kind}.url is required", f"{path}.{kind}.url"
        raise UmgError(pb.ERROR_REASON_MISSING_FIELD, message, field=field)
    return text


def _role(members: Members, path: str, roles: Mapping[str, Role], kind: "pb.VideoMediaKind.ValueType") -> Role:
    raw = members.get("role")
    if raw is None or not is_present(raw):
        return pb.VIDEO_MEDIA_ROLE_UNSPECIFIED
    name = parse(str, raw, f"{path}.role")
    known = {key: role for key, role in roles.items() if _KIND_OF_ROLE.get(role, pb.VIDEO_MEDIA_KIND_IMAGE) == kind}
    if name not in known:
        names = ", ".join(f"`{key}`" for key in known) or "none"
        raise invalid(f"{path}.role", f"{echo(name)} is not one of its values for this item; send one of {names}")
    return known[name]
