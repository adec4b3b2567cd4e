"""Rules and answers of the fake providers of Ark, and the product's words and paths, against the vendor's SDK."""

import re
from collections.abc import Mapping

from tests.pairs.vendors.wheel_modules import ARK
from tests.support.providers import ark_sdk
from tests.support.providers.images.ark import ArkImages
from tests.support.providers.video_d import ContentTaskProvider
from tests.support.providers.video_server import Task
from umg_grpc.knowledge.task_state_words import TASK_WORDS
from umg_grpc.wire.images.providers.response_decoding import LAYER_MEMBERS

TASKS, IMAGES = "resources/content_generation/tasks.py", "resources/images/images.py"
ITEMS = "types/content_generation/create_task_content_param.py"
TASK, IMAGE = "types/content_generation/content_generation_task.py", "types/images/images.py"
KINDS = {"str": str, "bool": bool, "int": int, "float": float, "List": list, "list": list, "Iterable": list}
"""First word of an argument's type that is a type of JSON -> the type."""
OBJECTS = {"OptimizePromptOptions", "SequentialImageGenerationOptions"}
TWO_FORMS = "image"
"""Member of images that is a text or a list."""


def kinds(arguments: Mapping[str, str]) -> dict[str, type]:
    """Return the types in JSON of the arguments."""
    found = dict[str, type]()
    for name, annotation in arguments.items():
        words = re.findall(r"\w+", annotation)
        known = [dict if word in OBJECTS else KINDS.get(word) for word in words]
        is_flag = "Literal" in words
        found[name] = bool if is_flag else next(kind for kind in known if kind is not None)
    return found


def test_the_members_of_bodies_and_their_types_are_the_arguments_of_the_sdk() -> None:
    assert kinds(ARK.arguments(TASKS, "create")) == ark_sdk.TASK_MEMBERS
    images = kinds(ARK.arguments(IMAGES, "generate"))
    assert images.pop(TWO_FORMS) is str
    assert images == ark_sdk.IMAGE_MEMBERS


def test_the_members_of_options_and_of_items_are_those_of_the_sdk() -> None:
    for options, members in ark_sdk.OPTIONS.items():
        name = "".join(word.title() for word in options.split("_"))
        assert set(ARK.fields(IMAGE, name)) == members
    assert set(ARK.fields(TASK, "ContentGenerationTool")) == ark_sdk.TOOL
    for kind, members in ark_sdk.ITEMS.items():
        title = {"text": "Text", "draft_task": "DraftTask"}.get(kind, kind.removesuffix("_url").title())
        fields = ARK.fields(ITEMS, f"CreateTaskContent{title}Param")
        assert set(fields) == {"type", *members}
        assert fields["type"] == f"Literal['{kind}']"
        if kind != "text":
            assert set(ARK.fields(ITEMS, f"CreateTaskContent{title}DataParam")) == ark_sdk.VALUES[kind]


def test_the_members_of_layers_are_those_of_the_sdk() -> None:
    assert set(LAYER_MEMBERS) <= set(ARK.fields(IMAGE, "Image"))


def test_the_paths_are_those_of_the_sdk() -> None:
    assert ark_sdk.TASKS in ARK.texts(TASKS)
    assert ark_sdk.IMAGES in ARK.texts(IMAGES)
    assert f"{ark_sdk.TASKS}/" in ARK.texts(TASKS)
    assert {"filter.task_ids", "page_num", "page_size"} <= ARK.texts(TASKS)


def test_every_state_of_the_sdk_has_a_meaning_and_no_other_is_of_the_vendor() -> None:
    note = ARK.note(TASK, "ContentGenerationTask", "status")
    states = set(re.findall(r"\w+", note[note.index("(") : note.index(")")]))
    assert states == {"running", "failed", "queued", "succeeded", "cancelled"}
    assert states <= set(TASK_WORDS["vidD"])
    assert TASK_WORDS["vidD"].keys() - states <= {"expired"}  # of the documentation, not of the SDK


def test_the_answers_of_the_fake_providers_have_the_members_of_the_sdk() -> None:
    videos = ContentTaskProvider(failure=("1", "no"))
    task = Task(id="cgt-1", model="m", body={"return_last_frame": True}, key="k")
    for step in ("queued", "running", "succeeded", "failed"):
        answer = videos._task(task, step)
        assert answer.keys() <= ARK.fields(TASK, "ContentGenerationTask").keys()
        assert set(answer.get("content") or {}) <= set(ARK.fields(TASK, "Content"))
        assert set(answer.get("usage") or {}) <= set(ARK.fields(TASK, "Usage"))
        assert set(answer["error"] or {}) <= set(ARK.fields(TASK, "ContentGenerationError"))
    for body in ({"prompt": "a boat"}, {"prompt": "[[none]]"}, {"prompt": "a boat", "response_format": "b64_json"}):
        for item in ArkImages()._items(body):
            assert set(item) - {"error"} <= set(ARK.fields(IMAGE, "Image"))
            assert set(item.get("error", {})) <= set(ARK.fields(IMAGE, "Error"))
