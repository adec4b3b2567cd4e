"""The check of the logs of all tests finds secrets, and nothing else."""

import pytest

from tests.support.secrets import leaked
from umg_grpc.access.api_keys import new_secret, shown_prefix


@pytest.mark.parametrize("text", ["key=sk-umg-end-to-end", "the key sk-provider-1 is wrong", "sk-umg-operator"])
def test_a_secret_in_a_line_is_found(text: str) -> None:
    assert leaked(f"first line\n{text}\nlast line") == [text]


def test_a_key_that_the_gateway_makes_is_found_and_its_prefix_is_not() -> None:
    secret = new_secret()
    assert leaked([f"key {secret}"]) == [f"key {secret}"]
    assert leaked([f"key {shown_prefix(secret)}", f"key {shown_prefix(secret)}…"]) == []
