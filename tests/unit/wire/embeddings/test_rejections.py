"""Bodies that the face refuses, and the path in each error."""

import msgspec
import pytest

from tests.unit.wire.rejections import Rejection, check_rejection
from umg_grpc.v1 import pb
from umg_grpc.wire.embeddings import EMBEDDINGS_FORMAT

MISSING = pb.ERROR_REASON_MISSING_FIELD


def body_with(value: object) -> dict[str, object]:
    return {"input": value}


REJECTIONS = [
    Rejection("no model", "model", {"model": msgspec.UNSET}, MISSING),
    Rejection("no input", "input", body_with(msgspec.UNSET), MISSING, "`input` is required; add it"),
    Rejection("null as input", "input", body_with(None), MISSING),
    Rejection("an empty text", "input", body_with(""), message="length at least 1"),
    Rejection("an input of another type", "input", body_with(3), message="expected a string or an array, got an integer"),
    Rejection("an empty list", "input", body_with([]), message="of length at least 1"),
    Rejection("an empty text among others", "input[2]", body_with(["a", "b", ""])),
    Rejection("a fraction among tokens", "input[1]", body_with([1, 2.5])),
    Rejection("a negative token", "input[1]", body_with([1, -2])),
    Rejection("a token that is too large", "input[0][1]", body_with([[1, 2**32]])),
    Rejection("a text inside a list of tokens", "input[0][1]", body_with([[1, "a"]])),
    Rejection("a list inside a list of tokens", "input[0][0]", body_with([[[1]]])),
    Rejection("tokens beside a text", "input[1]", body_with(["a", [1]]), message="a list of tokens beside a text"),
    Rejection("a token beside texts", "input[2]", body_with(["a", "b", 1]), message="a token beside a text; send texts"),
    Rejection("a text beside tokens", "input[1]", body_with([1, "a"]), message="a text beside a token"),
    Rejection("an unknown encoding", "encoding_format", {"encoding_format": "hex"}, message="`base64`, `float`"),
    Rejection("no dimensions at all", "dimensions", {"dimensions": 0}, message="at least 1"),
    Rejection("a part of a dimension", "dimensions", {"dimensions": 2.5}, message="whole number"),
    Rejection("dimensions of another type", "dimensions", {"dimensions": "256"}, message="expected a number, got a string"),
]  # fmt: skip


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
@pytest.mark.parametrize("more", [{}, {"zork": 1}], ids=["known", "beside an unknown field"])
def test_a_malformed_body_is_rejected_by_the_path_of_its_field(case: Rejection, more: dict[str, object]) -> None:
    check_rejection(EMBEDDINGS_FORMAT.decode_request, {"model": "m", "input": "a", **more}, case)


PATHS = {
    "model": "model",
    "inputs": "input",
    "inputs[2]": "input[2]",
    "inputs[2].text": "input[2]",
    "inputs[2].content": "input[2]",
    "inputs[2].tokens": "input[2]",
    "inputs[2].tokens.ids": "input[2]",
    "inputs[2].tokens.ids[7]": "input[2][7]",
    "inputs[2].dimensions": "dimensions",
    "dimensions": "dimensions",
    "encoding": "encoding_format",
    "user": "user",
}


@pytest.mark.parametrize(("canonical", "wire"), PATHS.items())
def test_a_canonical_path_is_converted_to_the_callers_path(canonical: str, wire: str) -> None:
    assert EMBEDDINGS_FORMAT.wire_path(canonical) == wire
