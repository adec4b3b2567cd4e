"""Base64 in steps: the same results as of the standard library."""

import base64

import pytest

from umg_grpc.wire.core.base64_steps import STEP_BYTES, decode_in_steps, encode_in_steps


@pytest.mark.parametrize("size", [0, 1, 2, 3, STEP_BYTES - 1, STEP_BYTES, STEP_BYTES + 1, 3 * STEP_BYTES + 2])
def test_base64_in_steps_is_that_of_the_standard_library(size: int) -> None:
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    assert encode_in_steps(data) == base64.b64encode(data)
    assert decode_in_steps(base64.b64encode(data)) == data


@pytest.mark.parametrize("at", [2, STEP_BYTES // 3 * 4 - 1])
def test_padding_before_the_end_of_base64_is_an_error(at: int) -> None:
    text = bytearray(b"A" * (STEP_BYTES // 3 * 8))
    text[at : at + 1] = b"="
    with pytest.raises(ValueError):  # noqa: PT011
        decode_in_steps(bytes(text))
