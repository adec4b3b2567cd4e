"""Table of the vendors' storage of prompts."""

import pytest

from umg_grpc.knowledge.prompt_storage_prices import STORAGE_ROWS, storage_of


@pytest.mark.parametrize(
    ("model", "min_tokens", "implicit", "token_hours"),
    [
        ("gemini-2.0-flash-001", 4096, False, "1"),
        ("gemini-3-flash-preview", 1024, True, "1"),
        ("google/gemini-3.1-pro-preview", 4096, True, "4.5"),
        ("gemini-3.6-flash", 1024, True, "0.5"),
        ("gemini-5.1-flash-lite", 1024, True, "0.5"),
        ("gemini-5-argon", 4096, True, "2.25"),
    ],
)
def test_a_model_has_the_first_row_that_matches(model: str, min_tokens: int, implicit: bool, token_hours: str) -> None:
    row = storage_of(model)
    assert row is not None
    assert (row.min_tokens, row.implicit, row.token_hours) == (min_tokens, implicit, token_hours)


def test_models_of_other_vendors_have_none() -> None:
    assert storage_of("claude-sonnet-5") is None


def test_each_row_has_its_source_and_date() -> None:
    assert all(row.source and row.as_of and row.micro_credits for row in STORAGE_ROWS)
