"""Every word for the state of a task, in every protocol, case and shape of a response."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.support.videos import submission
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.task_state_words import ALL_PROTOCOLS, Meaning, TaskWord, meaning_of
from umg_grpc.v1 import pb
from umg_grpc.wire.video import VIDEO_PROTOCOLS
from umg_grpc.wire.video.provider_protocol_interface import StatusOrMore
from umg_grpc.wire.video.provider_task_types import ProviderStatus, ProviderTask
from umg_grpc.wire.video.providers.response_decoding import unknown_task

Body = Mapping[str, object]
URL, REASON = "https://files.example/video.mp4", "the prompt names a person"
FACTS = {"vidG v1": '{"api":"v1"}', "vidE old": "/v1/videos/text2video"}
MODELS = {"vidA": "sora-2", "vidB": "veo-3", "vidC": "wan2.5-t2v", "vidE": "kling-3.0", "vidG": "MiniMax-H3"}
PROTOCOLS = ("vidA", "vidB", "vidC", "vidD", "vidE", "vidE old", "vidF", "vidG", "vidG v1")
SHARED_WORDS = tuple(row.word for row in read_rows("task_words", TaskWord) if ALL_PROTOCOLS in row.protocols)
CASES: tuple[Callable[[str], str], ...] = (str.lower, str.upper, str.title)
STATES: Mapping[Meaning, "pb.VideoTaskState.ValueType"] = {
    "queued": pb.VIDEO_TASK_STATE_QUEUED,
    "running": pb.VIDEO_TASK_STATE_RUNNING,
    "done": pb.VIDEO_TASK_STATE_SUCCEEDED,
    "failed": pb.VIDEO_TASK_STATE_FAILED,
    "expired": pb.VIDEO_TASK_STATE_FAILED,
    "cancelled": pb.VIDEO_TASK_STATE_CANCELLED,
}


@dataclass(frozen=True)
class Shape:
    """Shape of a relay's answer."""

    id: str
    """With the source of the shape."""
    body: Callable[[str], Body]
    """Word -> answer."""


def flat(word: str) -> Body:
    return {"id": "t-1", "task_id": "t-1", "status": word, "url": URL, "error": {"message": REASON, "code": ""}}


def enveloped(word: str) -> Body:
    task = {"id": 7, "task_id": "t-1", "status": word, "fail_reason": REASON, "result_url": URL, "progress": "57%"}
    return {"code": "success", "message": "", "data": task}


def maker_inside(word: str) -> Body:
    output = {"task_id": "t-1", "task_status": word, "video_url": URL, "message": REASON}
    return {"success": True, "data": {"output": output, "request_id": "r"}}


def listed(word: str) -> Body:
    return {"code": 200, "data": [{"task_id": "t-1", "state": word, "videos": [{"url": [URL]}], "error": REASON}]}


def with_code(word: str) -> Body:
    return {"code": "bad_prompt", "message": REASON, "task_id": "t-1", "status": word}


SHAPES = (
    Shape("flat (ArcReel/ArcReel lib/video_backends/newapi.py)", flat),
    Shape("TaskResponse (QuantumNous/new-api dto/task.go)", enveloped),
    Shape("the maker's answer in data (QuantumNous/new-api service/task_polling.go)", maker_inside),
    Shape("list (QuantumNous/new-api relay/channel/task/apimartvideo/adaptor.go)", listed),
)


def decoded(protocol: str, body: Body, http_status: int = 200) -> StatusOrMore:
    """Return the status of the task `t-1` from a response of any shape."""
    task = ProviderTask(id="t-1", model="m", facts=FACTS.get(protocol, ""))
    codec = VIDEO_PROTOCOLS[name_of(protocol)]
    statuses = codec.decode_status(http_status, {}, msgspec.json.encode(body), [task])
    return statuses.get("t-1", unknown_task())


def name_of(protocol: str) -> str:
    return protocol.partition(" ")[0]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.id)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_word_of_any_maker_ends_or_continues_a_task_in_every_protocol(protocol: str, shape: Shape) -> None:
    for word, case in product(SHARED_WORDS, CASES):
        meaning = meaning_of(word, name_of(protocol))
        status = decoded(protocol, shape.body(case(word)))
        if meaning == "lost":
            assert isinstance(status, UmgError), word
            continue
        assert isinstance(status, ProviderStatus), (word, status)
        assert meaning is not None
        assert (status.state, status.unknown_word) == (STATES[meaning], ""), word
        if meaning == "done":
            [result] = status.results
            assert result.url == URL, word
        if meaning in {"failed", "expired", "cancelled"}:
            assert status.error is not None
            assert status.error.message == REASON, word


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.id)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_unknown_word_counts_as_running_and_keeps_the_file(protocol: str, shape: Shape) -> None:
    status = decoded(protocol, shape.body("Rendered-2"))
    assert isinstance(status, ProviderStatus)
    assert (status.state, status.unknown_word) == (pb.VIDEO_TASK_STATE_RUNNING, "Rendered-2")
    assert [result.url for result in status.results] == [URL]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_failure_word_with_its_reason_behind_a_colon_is_a_failure(protocol: str) -> None:
    status = decoded(protocol, {"id": "t-1", "status": "FAILED: no GPU is free"})
    assert isinstance(status, ProviderStatus)
    assert status.error is not None
    assert (status.state, status.error.message) == (pb.VIDEO_TASK_STATE_FAILED, "no GPU is free")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_word_of_an_envelope_is_not_that_of_the_task(protocol: str) -> None:
    status = decoded(protocol, {"status": "success", "data": {"task_id": "t-1", "task_status": "processing"}})
    assert isinstance(status, ProviderStatus)
    assert status.state == pb.VIDEO_TASK_STATE_RUNNING


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_message_of_an_envelope_is_not_the_reason(protocol: str) -> None:
    body = {"code": 0, "message": "SUCCEED", "data": {"task_id": "t-1", "task_status": "failed"}}
    status = decoded(protocol, body)
    assert isinstance(status, ProviderStatus)
    assert status.error is not None
    assert status.error.message == "the provider reports no reason"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_relay_without_the_task_states_it_by_a_code_with_another_status(protocol: str) -> None:
    """Source: QuantumNous/new-api relay/relay_task.go."""
    error = decoded(protocol, {"code": "task_not_exist", "message": "task_not_exist", "data": None}, 400)
    assert isinstance(error, UmgError)
    assert error.name == "OBJECT_NOT_FOUND"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("body", [{"id": "t-1"}, {"message": "please wait"}, {"error": {"message": "no", "code": "x"}}])
def test_an_answer_without_a_state_is_no_state(protocol: str, body: Body) -> None:
    try:
        status = decoded(protocol, body)
    except UmgError as error:
        status = error
    assert isinstance(status, UmgError)
    assert status.name != "OBJECT_NOT_FOUND"


def created(protocol: str, body: Body) -> ProviderTask:
    """Return the task from a response of any shape to a submission."""
    made = submission(MODELS.get(protocol, "m"))
    return VIDEO_PROTOCOLS[name_of(protocol)].decode_created(200, {}, msgspec.json.encode(body), made)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.id)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_new_task_with_a_word_of_failure_is_refused_with_its_reason(protocol: str, shape: Shape) -> None:
    for word, case in product(SHARED_WORDS, CASES):
        if meaning_of(word, ALL_PROTOCOLS) not in {"failed", "expired", "cancelled"}:
            running = {name: value for name, value in shape.body(case(word)).items() if name != "error"}
            assert created(protocol, running).id in {"t-1", "7"}, word
            continue
        with pytest.raises(UmgError) as caught:
            created(protocol, shape.body(case(word)))
        assert (caught.value.failure, caught.value.message) == (Failure.CALLER, REASON), word


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_new_task_that_a_server_failed_may_be_sent_to_another_channel(protocol: str) -> None:
    for error in ({"message": "internal error"}, {"message": "x", "code": "server_error"}):
        with pytest.raises(UmgError) as caught:
            created(protocol, {"id": "t-1", "task_id": "t-1", "status": "failed", "error": error})
        assert caught.value.failure in {Failure.TRANSIENT, Failure.OVERLOADED}, error


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_new_task_that_failed_with_a_code_of_an_error_is_refused_with_its_reason(protocol: str) -> None:
    with raises_error(failure=Failure.CALLER, message=REASON):
        created(protocol, with_code("failed"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_new_task_that_failed_without_a_reason_is_refused(protocol: str) -> None:
    with pytest.raises(UmgError) as caught:
        created(protocol, {"code": 0, "message": "SUCCEED", "data": {"task_id": "t-1", "task_status": "failed"}})
    expected = "the task failed at its creation, without a reason"
    assert (caught.value.failure, caught.value.message) == (Failure.CALLER, expected)


def test_a_new_operation_that_is_done_with_an_error_is_refused() -> None:
    body = {"name": "models/veo-3/operations/o", "done": True, "error": {"code": 3, "message": REASON}}
    with raises_error(failure=Failure.CALLER, message=REASON):
        created("vidB", body)
    assert created("vidB", {**body, "error": None}).id == "models/veo-3/operations/o"
