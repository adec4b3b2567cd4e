"""Answers with which a provider or a model refuses the content, so that a fallback is called."""

import pytest

from umg_grpc.service.operations.generate.provider_content_refusals import is_refusal
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS

REFUSED = ("SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "IMAGE_SAFETY", "IMAGE_RECITATION")


@pytest.mark.parametrize("pass_", [True, False], ids=["passed", "decoded"])
@pytest.mark.parametrize(
    ("word", "refused"), [*((word, True) for word in REFUSED), ("STOP", False), ("MAX_TOKENS", False)]
)
def test_a_finish_reason_that_callers_see_as_a_filter_is_a_refusal(word: str, refused: bool, pass_: bool) -> None:
    body = f'{{"candidates": [{{"finishReason": "{word}", "index": 0, "content": {{"parts": [{{"text": "a"}}]}}}}]}}'
    response = TEXT_FORMATS["native"].decode_response(body.encode(), pb.GenerateRequest(model="m"), pass_)
    assert is_refusal(response) == refused
