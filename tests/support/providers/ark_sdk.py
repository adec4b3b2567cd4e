"""Rules of the Ark API as its SDK has them: members of bodies, and refusals of all others.

`tests/pairs/vendors/test_ark.py` compares the members and their types with the wheel of the SDK, and `test_ai_sdk.py`
values and roles with @ai-sdk/bytedance. The product's tables have no part in them.
"""

import re
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

TASKS, IMAGES = "/contents/generations/tasks", "/images/generations"
TASK_MEMBERS: Mapping[str, type] = {
    **dict.fromkeys(("model", "safety_identifier", "callback_url", "service_tier", "resolution", "ratio"), str),
    **dict.fromkeys(("output_format", "omni_reference_task_type"), str),
    **dict.fromkeys(("return_last_frame", "generate_audio", "draft", "camera_fixed", "watermark"), bool),
    **dict.fromkeys(("execution_expires_after", "priority", "seed", "duration", "frames"), int),
    **dict.fromkeys(("content", "tools"), list),
}
MEDIA_ROLES = {
    "image_url": {"first_frame", "last_frame", "reference_image"},
    "video_url": {"reference_video"},
    "audio_url": {"reference_audio"},
}
ITEMS: Mapping[str, set[str]] = {
    **{kind: {kind} for kind in ("text", "draft_task")},
    **{kind: {kind, "role"} for kind in MEDIA_ROLES},
}
"""Type of an item of `content` -> its members beside `type`."""
VALUES: Mapping[str, set[str]] = {"draft_task": {"id"}, **{kind: {"url"} for kind in MEDIA_ROLES}}
"""Type of an item -> members of the object in it."""
OPTIONS = {"sequential_image_generation_options": {"max_images"}, "optimize_prompt_options": {"thinking", "mode"}}
"""Member of a body for images with an object -> its members."""
TOOL = {"type"}
TIERS = {"default", "flex"}
RESOLUTIONS = {"480p", "720p", "1080p", "4k"}
RATIOS = {"16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive"}
FIRST_GENERATION_ONLY = {"camera_fixed", "frames"}
IMAGE_MEMBERS: Mapping[str, type] = {
    **dict.fromkeys(("model", "prompt", "response_format", "size", "sequential_image_generation"), str),
    "output_format": str,
    **dict.fromkeys(("watermark", "optimize_prompt", "layer_decomposition", "stream"), bool),
    **dict.fromkeys(("optimize_prompt_options", "sequential_image_generation_options"), dict),
    "seed": int,
    "guidance_scale": float,
    "tools": list,
}
SIZE = re.compile(r"[1-9]\d{2,4}x[1-9]\d{2,4}|[1-4]K")
IMAGE = re.compile(r"https?://\S+|data:image/(?:png|jpeg|webp|gif);base64,[A-Za-z0-9+/]+=*")


def task_problem(path: str, body: Json) -> str:
    """Return the reason for which a submission of a video is refused; "" if it is accepted."""
    if path != TASKS:
        return f"path {path}"
    if problem := _members(body, TASK_MEMBERS, required=("model", "content")):
        return problem
    if "-2-" in body["model"] and (unknown := FIRST_GENERATION_ONLY & set(body)):
        return f"{sorted(unknown)} of the first generation"
    checks = (("service_tier", TIERS), ("resolution", RESOLUTIONS), ("ratio", RATIOS))
    if wrong := [name for name, values in checks if body.get(name, next(iter(values))) not in values]:
        return f"value of {wrong}"
    if not 0 <= body.get("priority", 0) <= 9:
        return "value of priority"
    if "-2-0" in body["model"] and not (4 <= body.get("duration", 5) <= 15 or body["duration"] == -1):
        return "value of duration"
    if any(set(tool) != TOOL for tool in body.get("tools", [])):
        return "tools"
    return next((problem for item in body["content"] if (problem := _item_problem(item))), "")


def _item_problem(item: Json) -> str:
    kind = str(item.get("type"))
    if kind not in ITEMS or not {"type", kind} <= set(item) <= {"type", *ITEMS[kind]}:
        return f"item {sorted(item)}"
    if kind == "text":
        return "" if item["text"].strip() else "text"
    if set(item[kind]) != VALUES[kind]:
        return f"members of {kind}"
    if kind == "draft_task":
        return ""
    if kind != "image_url" and "role" not in item:
        return f"role of {kind}"
    if "role" in item and item["role"] not in MEDIA_ROLES[kind]:
        return f"role {item['role']}"
    schemes = ("https://", "http://", "asset://") + (() if kind == "video_url" else ("data:",))
    return "" if item[kind]["url"].startswith(schemes) else "url"


def image_problem(path: str, body: Json) -> str:
    """Return the reason for which a request for images is refused; "" if it is accepted."""
    if path != IMAGES:
        return f"path {path}"
    inputs = body.get("image", [])
    inputs = inputs if isinstance(inputs, list) else [inputs]
    rest = {name: value for name, value in body.items() if name != "image"}
    if problem := _members(rest, IMAGE_MEMBERS, required=("model", "prompt")):
        return problem
    if not all(isinstance(item, str) and IMAGE.fullmatch(item) for item in inputs) or len(inputs) > 14:
        return "image"
    if "size" in body and SIZE.fullmatch(body["size"]) is None:
        return "size"
    if body.get("output_format", "png") not in {"png", "jpeg"}:
        return "output_format"
    if body.get("sequential_image_generation", "auto") not in {"auto", "disabled"}:
        return "sequential_image_generation"
    if wrong := [name for name, members in OPTIONS.items() if not set(body.get(name, {})) <= members]:
        return f"members of {wrong}"
    if (
        "seedream-" in body["model"]
        and "seedream-3" not in body["model"]
        and (unknown := {"seed", "guidance_scale"} & set(body))
    ):
        return f"{sorted(unknown)} of the first generation"
    return ""


def _members(body: Json, known: Mapping[str, type], *, required: tuple[str, ...]) -> str:
    if missing := [name for name in required if not body.get(name)]:
        return f"without {missing}"
    for name, value in body.items():
        kind = known.get(name)
        if kind is None:
            return f"unknown member {name}"
        is_right = isinstance(value, (int, float)) if kind is float else type(value) is kind
        if not is_right:
            return f"type of {name}"
    return ""
