"""Messages of providers name the model as the caller does, once."""

from dataclasses import dataclass

import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Channel
from umg_grpc.routing import Target
from umg_grpc.service.pipeline.failure_policy import under_public_name
from umg_grpc.v1 import pb


@dataclass(frozen=True)
class Named:
    id: str
    upstream: str
    public: str
    message: str
    expected: str


NAMED = [
    Named("the provider's id", "x1", "fast", "model `x1` not found", "model `fast` not found"),
    Named("the provider's id twice", "x1", "c/x1", "x1: no x1", "c/x1: no c/x1"),
    Named("the public id already", "x1", "c/x1", "The model `c/x1` does not exist", "The model `c/x1` does not exist"),
    Named("both", "x1", "c/x1", "`c/x1` is `x1`", "`c/x1` is `c/x1`"),
    Named("a public id of several parts", "x1", "a/b/x1", "no a/b/x1, use x1.", "no a/b/x1, use a/b/x1."),
    Named("a public id before the provider's", "x1", "x1/fast", "no x1/fast", "no x1/fast"),
    Named("a provider's id with the public one", "openai/gpt", "gpt", "no openai/gpt", "no gpt"),
    Named("a part of another word", "x1", "c/x1", "x12, x1-mini and x1.5", "x12, x1-mini and x1.5"),
    Named("other words", "x1", "c/x1", "try again", "try again"),
]


@pytest.mark.parametrize("case", NAMED, ids=lambda case: case.id)
def test_a_message_has_the_callers_name_of_the_model(case: Named) -> None:
    target = Target(Channel(name="c", protocols=("chat",), models=()), case.upstream, "", frozenset())
    error = UmgError(pb.ERROR_REASON_UPSTREAM_REJECTED, case.message)
    assert under_public_name(error, target, case.public).message == case.expected
