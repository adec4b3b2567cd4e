"""Guards check the texts of every operation, and get its messages as a whole."""

import pytest
from google.protobuf.message import Message

from umg_grpc.operations import OPERATION_ROWS, Operation
from umg_grpc.operations.generation_operation import TOKEN_COUNTING
from umg_grpc.operations.video_operation import VIDEO_REMIX
from umg_grpc.service.guardrails.guard_driver import CONTENT_FIELDS
from umg_grpc.service.guardrails.guarded_texts import has_texts
from umg_grpc.v1 import pb

UNCHECKED = (TOKEN_COUNTING, VIDEO_REMIX)
"""Operations that call no provider, or are checked by the request of another one that is made of theirs."""
CHECKED = [row for row in OPERATION_ROWS if row not in UNCHECKED]
WITHOUT_CONTENT = {
    pb.EmbedResponse: "vectors have no content that a guard could read",
    pb.CreateVideoTaskResponse: "a video is made after the call, and is read by its address",
}
"""Response that no guard gets -> reason."""


def name(row: Operation[Message, Message]) -> str:
    return row.name


@pytest.mark.parametrize("row", CHECKED, ids=name)
def test_the_request_of_an_operation_has_texts_that_guards_check(row: Operation[Message, Message]) -> None:
    assert has_texts(row.request.DESCRIPTOR), f"mark the texts of {row.request.__name__} by `guarded_text`"


@pytest.mark.parametrize("row", CHECKED, ids=name)
def test_a_guard_may_get_the_whole_messages_of_an_operation(row: Operation[Message, Message]) -> None:
    for kind in (row.request, row.response):
        is_contained = kind.DESCRIPTOR.full_name in CONTENT_FIELDS
        assert is_contained != (kind in WITHOUT_CONTENT), f"add {kind.__name__} to `GuardedContent`"
