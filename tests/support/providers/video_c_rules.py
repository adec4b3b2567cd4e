"""Rules of DashScope for bodies of video tasks: members, types and values that a model takes, all others refused. They
are from the vendor's SDK and the AI SDK's package, and never from the product's own tables.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.support.providers.server import Json, RefusedError

VIDEO_PATH = "/api/v1/services/aigc/video-generation/video-synthesis"
IMAGE_PATH = "/api/v1/services/aigc/image2video/video-synthesis"
"""Path of the models whose id has `kf2v` (dashscope 2.0.2, `VideoSynthesis._get_input`)."""
INPUTS: Mapping[str, type] = {
    "prompt": str,
    "negative_prompt": str,
    "img_url": str,
    "audio_url": str,
    "first_frame_url": str,
    "last_frame_url": str,
    "reference_urls": list,
    "media": list,
    "template": str,
}
"""Members of `input` (dashscope 2.0.2, `VideoSynthesis.call`), with their types."""
PARAMETERS: Mapping[str, type] = {
    "size": str,
    "duration": int,
    "seed": int,
    "prompt_extend": bool,
    "watermark": bool,
    "resolution": str,
    "ratio": str,
    "shot_type": str,
    "audio_setting": str,
    "audio": bool,
}
"""Members of `parameters` (the same call; `audio` is in its examples and in @ai-sdk/alibaba 1.0.61)."""
VOICE = "reference_voice"
RATIOS = ("16:9", "9:16", "1:1", "4:3", "3:4")
"""@ai-sdk/alibaba 1.0.61, `supportedRatios`."""
COMMON = frozenset({"duration", "seed", "watermark"})


@dataclass(frozen=True, kw_only=True)
class Series:
    models: str
    path: str = VIDEO_PATH
    inputs: frozenset[str] = frozenset({"prompt", "negative_prompt"})
    needs: frozenset[str] = frozenset({"prompt"})
    """Members of `input` that a body must have, `media` for at least one item."""
    media: Mapping[str, int] = field(default_factory=dict)
    """Type of an item in `media` -> its largest number."""
    parameters: frozenset[str] = COMMON | {"prompt_extend"}
    seconds: tuple[int, ...] = ()
    tiers: tuple[str, ...] = ()
    ratios: tuple[str, ...] = RATIOS


def _with(*names: str) -> frozenset[str]:
    return COMMON | {"prompt_extend"} | set(names)


_LONG, _HORSE = tuple(range(2, 16)), tuple(range(3, 16))
_OLD = Series(models="", seconds=(5,), tiers=("480P", "720P", "1080P"))
_WAN_2_5 = replace(_OLD, seconds=(5, 10))
_WAN_2_6 = replace(_OLD, seconds=_LONG)
_WAN_2_7 = Series(models="", seconds=_LONG, tiers=("720P", "1080P"))
_HAPPY = Series(
    models="",
    inputs=frozenset({"prompt"}),
    seconds=_HORSE,
    tiers=("480P", "720P", "1080P"),
    parameters=COMMON | {"resolution"},
)
_FRAME = frozenset({"img_url", "prompt", "negative_prompt"})
_MEDIA = frozenset({"media", "prompt", "negative_prompt"})
SERIES = (
    replace(
        _OLD,
        models=r"wanx?2\.[12]-kf2v-.*",
        path=IMAGE_PATH,
        inputs=frozenset({"prompt", "negative_prompt", "first_frame_url", "last_frame_url", "template"}),
        needs=frozenset({"first_frame_url", "last_frame_url"}),
        parameters=_with("resolution"),
    ),
    replace(_OLD, models=r"wanx?2\.[12]-t2v-.*", parameters=_with("size")),
    replace(
        _OLD, models=r"wanx?2\.[12]-i2v-.*", inputs=_FRAME, needs=_FRAME & {"img_url"}, parameters=_with("resolution")
    ),
    replace(
        _WAN_2_5,
        models="wan2.5-t2v-preview",
        inputs=_OLD.inputs | {"audio_url"},
        parameters=_with("size", "audio"),
    ),
    replace(
        _WAN_2_5,
        models="wan2.5-i2v-preview",
        inputs=_FRAME | {"audio_url"},
        needs=_FRAME & {"img_url"},
        parameters=_with("resolution", "audio"),
    ),
    replace(
        _WAN_2_6,
        models="wan2.6-t2v",
        inputs=_OLD.inputs | {"audio_url"},
        parameters=_with("size", "audio", "shot_type"),
    ),
    replace(
        _WAN_2_6,
        models="wan2.6-i2v(-flash)?",
        inputs=_FRAME | {"audio_url"},
        needs=_FRAME & {"img_url"},
        parameters=_with("resolution", "audio", "shot_type"),
    ),
    replace(
        _WAN_2_6,
        models="wan2.6-r2v(-flash)?",
        inputs=_OLD.inputs | {"reference_urls"},
        needs=frozenset({"prompt", "reference_urls"}),
        parameters=_with("size", "audio", "shot_type"),
    ),
    replace(
        _WAN_2_7,
        models=r"wan2\.7-t2v(-[\d-]+)?",
        inputs=_OLD.inputs | {"audio_url"},
        parameters=_with("resolution", "ratio"),
    ),
    replace(
        _WAN_2_7,
        models=r"wan2\.7-i2v(-[\d-]+)?",
        inputs=_MEDIA,
        needs=frozenset({"media"}),
        media={"first_frame": 1, "last_frame": 1, "driving_audio": 1, "first_clip": 1},
        parameters=_with("resolution"),
    ),
    replace(
        _WAN_2_7,
        models=r"wan2\.7-r2v(-[\d-]+)?",
        inputs=_MEDIA,
        needs=frozenset({"media", "prompt"}),
        media={"first_frame": 1, "reference_image": 5, "reference_video": 5},
        parameters=_with("resolution", "ratio"),
    ),
    replace(
        _WAN_2_7,
        models=r"wan2\.7-videoedit(-[\d-]+)?",
        inputs=_MEDIA,
        needs=frozenset({"media", "prompt"}),
        media={"video": 1, "reference_image": 3},
        parameters=_with("resolution", "ratio", "audio_setting"),
    ),
    Series(
        models="wan3.0-video(-prime)?",
        inputs=_MEDIA,
        seconds=tuple(range(2, 31)),
        tiers=("480P", "720P", "1080P"),
        ratios=("adaptive", *RATIOS),
        media={
            **dict.fromkeys(("first_frame", "last_frame"), 1),
            **dict.fromkeys(("reference_image", "reference_video", "reference_audio", "file", "link"), 9),
        },
        parameters=_with("resolution", "ratio", "audio"),
    ),
    replace(_HAPPY, models=r"happyhorse-1\.\d-t2v", parameters=_HAPPY.parameters | {"ratio"}),
    replace(
        _HAPPY,
        models=r"happyhorse-1\.\d-i2v",
        inputs=frozenset({"prompt", "media"}),
        needs=frozenset({"media"}),
        media={"first_frame": 1},
    ),
    replace(
        _HAPPY,
        models=r"happyhorse-1\.\d-r2v",
        inputs=frozenset({"prompt", "media"}),
        needs=frozenset({"prompt", "media"}),
        media={"reference_image": 9},
        parameters=_HAPPY.parameters | {"ratio"},
    ),
    replace(
        _HAPPY,
        models=r"happyhorse-1\.\d-video-edit",
        inputs=frozenset({"prompt", "media"}),
        needs=frozenset({"prompt", "media"}),
        media={"video": 1, "reference_image": 5},
        parameters=_HAPPY.parameters - {"duration"} | {"audio_setting"},
    ),
)
"""Rows from @ai-sdk/alibaba 1.0.61 (`detectProtocol`, `detectMode`), dashscope 2.0.2 and the vendor's pages that its
SDKs cite; read on 2026-11-29.
"""


def series_of(model: object) -> Series | None:
    """Return the rules of a model; None for an id that the vendor does not have."""
    return next((row for row in SERIES if isinstance(model, str) and re.fullmatch(row.models, model)), None)


def check_submission(path: str, headers: Mapping[str, str], body: Json) -> None:
    """Raise RefusedError for a submission that DashScope refuses. `headers`: by lower-case name."""
    check_header(headers)
    _only(body, {"model", "input", "parameters"}, "")
    source, parameters = body.get("input"), body.get("parameters", {})
    found = series_of(body.get("model"))
    if found is None:
        raise RefusedError("Model not exist.", code="ModelNotFound", status=404)
    _require(path == found.path, "url error, please check url!")
    _require(isinstance(source, dict) and isinstance(parameters, dict), "input must be an object")
    _check_members(source, INPUTS, found.inputs)
    _check_members(parameters, PARAMETERS, found.parameters)
    for name in found.needs:
        _require(source.get(name), f"Field required: input.{name}")
    _check_media(source.get("media", []), found)
    _check_values(parameters, found)


def check_header(headers: Mapping[str, str]) -> None:
    """Raise RefusedError for a submission that does not request a task. `headers`: by lower-case name."""
    if headers.get("x-dashscope-async") != "enable":
        raise RefusedError("current user api does not support synchronous calls.", code="AccessDenied", status=403)


def _check_members(given: Json, types: Mapping[str, type], taken: frozenset[str]) -> None:
    _only(given, taken, "")
    for name, value in given.items():
        _require(type(value) is types[name], f"{name} has a wrong type")


def _check_media(media: list[Json], series: Series) -> None:
    counts = dict[str, int]()
    for item in media:
        _only(item, {"type", "url", VOICE}, "media.")
        kind = item.get("type", "")
        counts[kind] = counts.get(kind, 0) + 1
        _require(counts[kind] <= series.media.get(kind, 0), f"media type {kind} is not supported")
        _require(re.match("https?://|data:[a-z]+/", item.get("url", "")), "url error, please check url!")
    references = {kind for kind in counts if kind.startswith("reference_") or kind in ("file", "link")}
    if series.models.startswith("wan3"):  # "wan3 also rejects mixing": @ai-sdk/alibaba, `AlibabaVideoModelOptions`
        _require(not references or not counts.keys() - references, "frames and references cannot be combined")


def _check_values(parameters: Json, series: Series) -> None:
    _require(parameters.get("duration", series.seconds[0]) in series.seconds, "duration")
    _require(parameters.get("resolution", series.tiers[-1]) in series.tiers, "resolution")
    _require(parameters.get("ratio", "16:9") in series.ratios, "ratio")
    _require(re.fullmatch(r"\d{3,4}\*\d{3,4}", parameters.get("size", "1280*720")), "size")
    _require(0 <= parameters.get("seed", 0) < 2**31, "seed")
    _require(parameters.get("shot_type", "multi") in ("single", "multi"), "shot_type")
    _require(parameters.get("audio_setting", "auto") in ("auto", "origin"), "audio_setting")


def _only(given: Json, taken: frozenset[str] | set[str], at: str) -> None:
    for name in given:
        _require(name in taken, f"{at}{name} is not supported by the model")


def _require(condition: object, message: str) -> None:
    if not condition:
        raise RefusedError(f"<400> InternalError.Algo.InvalidParameter: {message}", code="InvalidParameter")
