"""Tasks of images in the responses of relays: every word in each case, and the shapes in which relays write them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

import msgspec
import pytest

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.task_state_words import ALL_PROTOCOLS, TASK_WORDS, meaning_of
from umg_grpc.v1 import pb
from umg_grpc.wire.images.provider_protocol_interface import ImageTasks
from umg_grpc.wire.images.providers import IMAGE_PROTOCOLS

NAME = "dashscope_images"
URLS = ["https://files.example/1.png", "https://files.example/2.png"]
REASON = "no picture of persons"
Body = Mapping[str, object]


@dataclass(frozen=True)
class Shape:
    id: str
    """With the source of the shape."""
    body: Callable[[str], Body]
    """Word -> answer."""


def own(word: str) -> Body:
    return {
        "output": {"task_id": "t", "task_status": word, "results": [{"url": url} for url in URLS], "message": REASON}
    }


def enveloped(word: str) -> Body:
    return {"code": "success", "data": own(word)}


def flat(word: str) -> Body:
    return {"id": "t", "status": word, "data": [{"url": URLS[0]}], "fail_reason": REASON}


def listed(word: str) -> Body:
    result = {"images": [{"url": url} for url in URLS]}
    return {
        "code": 0,
        "message": "SUCCEED",
        "data": {"task_id": "t", "task_status": word, "task_result": result, "error": REASON},
    }


SHAPES = (
    Shape("own", own),
    Shape("the maker's answer in data (QuantumNous/new-api dto/task.go)", enveloped),
    Shape("images of the OpenAI API (MAX-API-Next/MAX-API#48)", flat),
    Shape("the API of another maker (QuantumNous/new-api relay/channel/task/kling/adaptor.go)", listed),
)


def tasks() -> ImageTasks:
    found = IMAGE_PROTOCOLS[NAME].tasks
    assert found is not None
    return found


def decoded(body: Body) -> pb.GenerateImageResponse | UmgError | None:
    try:
        return tasks().decode_status(msgspec.json.encode(body), pb.GenerateImageRequest(model="m"))
    except UmgError as error:
        return error


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.id)
def test_a_word_of_any_maker_ends_or_continues_a_task(shape: Shape) -> None:
    for word, case in product(TASK_WORDS[ALL_PROTOCOLS], (str.lower, str.upper, str.title)):
        found, meaning = decoded(shape.body(case(word))), meaning_of(word, NAME)
        if meaning in {"queued", "running"}:
            assert found is None, word
        elif meaning == "done":
            assert isinstance(found, pb.GenerateImageResponse), (word, found)
            assert [image.url for image in found.result.images] in (URLS, URLS[:1]), word
        else:
            assert isinstance(found, UmgError), word
            assert REASON in f"{found.message} {found.facts and found.facts.message}", word


def test_a_finished_task_without_images_may_still_have_some() -> None:
    error = decoded({"output": {"task_id": "t", "task_status": "SUCCEEDED"}})
    assert isinstance(error, UmgError)
    assert error.failure is Failure.AMBIGUOUS


@pytest.mark.parametrize(
    "body",
    [
        {"output": {"task_id": "t-1", "task_status": "PENDING"}},
        {"code": "success", "data": {"task_id": "t-1"}},
        {"code": 200, "data": [{"status": "submitted", "task_id": "t-1"}]},
        {"success": True, "data": {"output": {"task_id": "t-1"}}},
    ],
    ids=["own", "enveloped", "listed", "the maker's answer in data"],
)
def test_the_id_of_a_task_is_found_where_relays_write_it(body: Body) -> None:
    assert tasks().decode_created(msgspec.json.encode(body)) == "t-1"
