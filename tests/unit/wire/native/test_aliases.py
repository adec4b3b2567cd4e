"""Aliases of the vendor for its newest model have the forms of the newest generation."""

import pytest

from umg_grpc.wire.native.encode_messages import generation


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("gemini-flash-latest", 3),
        ("gemini-flash-lite-latest", 3),
        ("models/gemini-pro-latest", 3),
        ("gemini-2.5-flash-latest", 2),
        ("gemini-4-argon", 4),
        ("gemini-embedding", 0),
        ("my-latest", 0),
    ],
)
def test_an_alias_has_the_forms_of_the_newest_generation(model: str, known: int) -> None:
    assert generation(model) == known
