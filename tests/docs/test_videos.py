"""Page docs/videos.md: its tables are those of the code."""

import re

from http_facade.routes import VIDEO_ROUTES, Shape
from tests.docs.tables import DOCS, quoted, rows, section
from umg_grpc.knowledge.families.video_model_rules import DOCUMENTED_MODELS, ENTRY_RULES, Entry, Rules
from umg_grpc.service.video_tasks.task_lookup import POLL_AFTER, POLL_SECONDS
from umg_grpc.v1 import pb
from umg_grpc.wire.video import (
    ENTRY_FORMATS,
    unified_caller_api,
    vid_d_caller_api,
    vid_e_3_caller_api,
    vid_e_v1_caller_api,
    vid_f_caller_api,
    vid_g_caller_api,
    video_object_caller_api,
)
from umg_grpc.wire.video.prompt_option_markers import OPTION_MARKERS

PAGE = (DOCS / "videos.md").read_text(encoding="utf-8")
NAMES: dict[Entry, str] = {
    pb.VIDEO_ENTRY_UNIFIED: "unified",
    pb.VIDEO_ENTRY_VIDEO_OBJECT: "video-object",
    pb.VIDEO_ENTRY_D: "D",
    pb.VIDEO_ENTRY_E_V1: "E v1",
    pb.VIDEO_ENTRY_E_3: "E 3.0",
    pb.VIDEO_ENTRY_F: "F",
    pb.VIDEO_ENTRY_G: "G",
}
WORDS = {
    pb.VIDEO_ENTRY_UNIFIED: unified_caller_api.STATE_NAMES,
    pb.VIDEO_ENTRY_VIDEO_OBJECT: video_object_caller_api.STATE_NAMES,
    pb.VIDEO_ENTRY_D: vid_d_caller_api.STATE_NAMES,
    pb.VIDEO_ENTRY_E_V1: vid_e_v1_caller_api.STATE_NAMES,
    pb.VIDEO_ENTRY_E_3: vid_e_3_caller_api.STATE_NAMES,
    pb.VIDEO_ENTRY_F: vid_f_caller_api.STATE_NAMES,
    pb.VIDEO_ENTRY_G: vid_g_caller_api.STATE_NAMES,
}
SECONDS = "duration_seconds"


def lengths(rules: Rules) -> str:
    if SECONDS in rules.values:
        return ", ".join(str(value) for value in rules.values[SECONDS])
    if SECONDS in rules.ranges:
        return "{} to {}".format(*rules.ranges[SECONDS])
    return "1 to 60" if SECONDS in rules.accepted else ""


def choices(rules: Rules) -> str:
    return "; ".join(
        ", ".join(f"`{value}`" for value in values) for name, values in rules.values.items() if name != SECONDS
    )


def defaults(rules: Rules) -> str:
    named = {"generate_audio": {False: "no sound", True: "sound"}, "sample_count": {1: "1 video"}}
    shown = {**rules.defaults, **rules.always}
    return ", ".join(
        f"{value} s" if name == SECONDS else named[name][value] if name in named else f"`{value}`"
        for name, value in shown.items()
    )


def media(rules: Rules) -> str:
    if pb.VIDEO_MEDIA_KIND_VIDEO in rules.kinds:
        return "images, videos" + (", audio" if pb.VIDEO_MEDIA_KIND_AUDIO in rules.kinds else "")
    if rules.max_images == 0:
        return "none"
    if rules.max_images is None:
        return "images" + (", one at least" if rules.needs_image else "")
    frames = "first and last frame" if rules.max_images == 2 else "an image"
    return frames + (", required" if rules.needs_image else "")


def parameters() -> list[list[str]]:
    return [
        [NAMES[entry], f"`{model}`", lengths(rules), defaults(rules), choices(rules), media(rules)]
        for entry, models in ENTRY_RULES.items()
        for model, rules in models.items()
        if model in DOCUMENTED_MODELS
    ]


def test_every_model_is_on_the_page_with_its_parameters() -> None:
    assert rows(PAGE, "Models") == parameters()


def test_every_path_is_on_the_page() -> None:
    served = {(route.method, re.sub(r"\{.*?\}", "{}", route.path.rstrip("/"))) for route in VIDEO_ROUTES}
    pairs = re.findall(r"`((?:GET|POST|DELETE)(?:` and `(?:GET|POST|DELETE))*) (/[^\s`?]*)", PAGE)
    named = {
        (method, re.sub(r"\{.*?\}", "{}", path)) for methods, path in pairs for method in re.findall("[A-Z]+", methods)
    }
    assert named == served


def test_the_words_of_the_states_are_those_of_the_entries() -> None:
    found = {cells[0]: quoted(" ".join(cells[1:])) for cells in rows(PAGE, "States")}
    states = [state for state in pb.VideoTaskState.values() if state > pb.VIDEO_TASK_STATE_SUBMITTING]
    assert found == {NAMES[entry]: [words[state] for state in states] for entry, words in WORDS.items()}


def test_entries_with_notifications_are_named() -> None:
    [sentence] = re.findall(r"(?s)\*\*Notifications\*\*.*?`callback_url` of (.*?) is notified", PAGE)
    named = {name for name in NAMES.values() if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w.])", sentence)}
    assert named == {NAMES[entry] for entry, row in ENTRY_FORMATS.items() if row.notifies}


def test_every_marker_is_on_the_page() -> None:
    assert set(quoted(section(PAGE, "Unified entry"))) >= {f"--{marker}" for marker in OPTION_MARKERS}


def test_the_hints_are_those_of_the_page() -> None:
    assert POLL_AFTER in PAGE
    assert f"from {POLL_SECONDS[0][1]:g} to {POLL_SECONDS[-1][1]:g} seconds" in " ".join(PAGE.split())


def test_only_the_content_is_a_file() -> None:
    assert len([route for route in VIDEO_ROUTES if route.shape is Shape.GET_VIDEO_CONTENT]) == 2
