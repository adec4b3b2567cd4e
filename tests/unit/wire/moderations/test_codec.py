"""Bodies of moderations: requests as callers and providers write them, and providers' responses."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.error_checks import raises_error
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.facts_beside_request import NO_NOTES
from umg_grpc.wire.moderations import MODERATIONS_FORMAT
from umg_grpc.wire.unary_format_interface import ClientShape

IMAGE = {"type": "image_url", "image_url": {"url": "https://pictures.test/a.png"}}
TEXT = {"type": "text", "text": "a"}
WHOLE = {
    "flagged": False,
    "categories": {"violence": False},
    "category_scores": {"violence": 0.25},
    "category_applied_input_types": {"violence": ["text"]},
}
MISTRAL = {"categories": {"selfharm": False, "pii": True}, "category_scores": {"selfharm": 0.1, "pii": 0.9}}
"""Result of a provider that states no `flagged` (mistralai, `ModerationObject`)."""


def decoded(**body: object) -> pb.ModerateRequest:
    return MODERATIONS_FORMAT.decode_request(json.dumps(body).encode(), {}).canonical


def sent(request: pb.ModerateRequest, model: str = "m") -> dict[str, Any]:
    body: dict[str, Any] = json.loads(MODERATIONS_FORMAT.encode_request(request, model, NO_NOTES).body)
    return body


def content(*parts: pb.ModerationPart) -> pb.ModerationInput:
    return pb.ModerationInput(parts=parts)


@dataclass(frozen=True)
class Form:
    """Member `input` of a body, with the number of parts of each content."""

    id: str
    input: object
    parts: tuple[int, ...]


FORMS = (
    Form("a text", "a", (1,)),
    Form("an empty text", "", (1,)),
    Form("texts", ["a", "b"], (1, 1)),
    Form("parts", [TEXT, IMAGE], (2,)),
    Form("a text among parts", ["a", IMAGE], (2,)),
)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.id)
def test_a_body_passes_to_its_provider_with_another_model(form: Form) -> None:
    body = {"model": "mine", "input": form.input, "policy": "strict"}
    request = decoded(**body)
    assert [len(given.parts) for given in request.inputs] == list(form.parts)
    assert sent(request) == {**body, "model": "m"}


def test_a_body_without_a_model_is_for_the_default_of_the_vendor() -> None:
    assert decoded(input="a").model == "omni-moderation-latest"


def test_a_canonical_request_is_written_in_the_shortest_form() -> None:
    text, image = pb.ModerationPart(text="a"), pb.ModerationPart(image_url="https://pictures.test/a.png")
    assert sent(pb.ModerateRequest(inputs=[content(text)])) == {"model": "m", "input": "a"}
    assert sent(pb.ModerateRequest(inputs=[content(text), content(text)])) == {"model": "m", "input": ["a", "a"]}
    empty = content(pb.ModerationPart(text=""))
    assert sent(pb.ModerateRequest(inputs=[content(text), empty])) == {"model": "m", "input": ["a", ""]}
    assert sent(decoded(input=["", ""])) == {"model": "m", "input": ["", ""]}
    assert sent(pb.ModerateRequest(inputs=[content(text, image)])) == {"model": "m", "input": [TEXT, IMAGE]}
    with raises_error(reason=pb.ERROR_REASON_UNTRANSLATABLE, field="inputs"):
        sent(pb.ModerateRequest(inputs=[content(text), content(image)]))


@dataclass(frozen=True)
class Refused:
    """Body that is refused, with the field that the error names."""

    id: str
    body: dict[str, object]
    field: str


REFUSED = (
    Refused("no input", {}, "input"),
    Refused("an empty list", {"input": []}, "input"),
    Refused("a number", {"input": 3}, "input"),
    Refused("an unknown part", {"input": [{"type": "input_audio"}]}, "input[0].type"),
    Refused(
        "an image without an address",
        {"input": [TEXT, {"type": "image_url", "image_url": {}}]},
        "input[1].image_url.url",
    ),
    Refused("an empty model", {"input": "a", "model": ""}, "model"),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_an_invalid_body_is_refused_by_the_name_of_the_field(case: Refused) -> None:
    with raises_error(field=case.field):
        decoded(**case.body)


def answer(body: dict[str, object], request: pb.ModerateRequest, *, passes: bool = True) -> dict[str, Any]:
    response = MODERATIONS_FORMAT.decode_response(json.dumps(body).encode(), request, passes)
    encoded: dict[str, Any] = json.loads(MODERATIONS_FORMAT.encode_response(response, request, ClientShape.SDK))
    return encoded


def test_a_whole_response_passes_with_the_callers_name_of_the_model() -> None:
    body = {
        "id": "modr-1",
        "model": "omni-moderation-2024-09-26",
        "results": [{**WHOLE, "new": 1}],
        "extra": {"a": [2]},
    }
    assert answer(body, decoded(input="a", model="mine")) == {**body, "model": "mine"}


def test_a_response_without_members_that_sdks_read_is_completed() -> None:
    body = {"id": "mod-1", "model": "mistral-moderation-2603", "results": [MISTRAL], "usage": {"prompt_tokens": 7}}
    assert answer(body, decoded(input="a", model="mine")) == {
        "id": "mod-1",
        "model": "mine",
        "results": [{"flagged": True, **MISTRAL, "category_applied_input_types": {"selfharm": [], "pii": []}}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 0, "total_tokens": 7},
    }


def test_values_that_a_provider_leaves_open_are_read() -> None:
    judged = {"flagged": False, "categories": {"hate": False, "illicit": None}}
    scores = {"category_scores": {"hate": 0.25, "illicit": None}, "category_applied_input_types": None}
    made = answer({"id": "m", "model": "m", "results": [judged | scores]}, decoded(input="a"))["results"][0]
    assert (made["categories"]["illicit"], made["category_scores"]) == (False, {"hate": 0.25, "illicit": 0})
    assert made["category_applied_input_types"] == {"hate": [], "illicit": []}


def test_a_response_without_an_id_gets_one() -> None:
    made = answer({"model": "m", "results": [WHOLE]}, decoded(input="a"))
    assert made["id"].startswith("modr-")
    assert made["results"] == [WHOLE]


@pytest.mark.parametrize(
    "body",
    [{"results": [WHOLE, WHOLE]}, {"results": []}, {"results": [{}]}, {"results": 3}, {}, {"error": {"message": "no"}}],
    ids=json.dumps,
)
def test_a_response_without_a_result_for_each_content_is_a_failure(body: dict[str, object]) -> None:
    with pytest.raises(UmgError) as failed:
        answer(body, decoded(input="a"))
    assert failed.value.reason in {pb.ERROR_REASON_UPSTREAM_FAILED, pb.ERROR_REASON_UPSTREAM_REJECTED}
