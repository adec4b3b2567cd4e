"""Vectors as they travel: packed float32, little-endian, to the last bit."""

import math
import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umg_grpc.wire.vectors import are_whole, elements, json_with_numbers, pack

singles = st.floats(width=32, allow_nan=False, allow_infinity=False)
doubles = st.floats(allow_nan=False, allow_infinity=False)


def shown(packed: bytes) -> bytes:
    return json_with_numbers({"v": elements(packed)})


def read(document: bytes) -> list[float]:
    return msgspec.json.decode(document, type=dict[str, list[float]])["v"]


@given(st.lists(singles, min_size=1))
def test_a_float32_is_itself_whichever_way_it_goes(numbers: list[float]) -> None:
    packed = pack(numbers)
    assert packed == struct.pack(f"<{len(numbers)}f", *numbers)
    assert pack(read(shown(packed))) == packed
    assert msgspec.json.decode(msgspec.json.encode(packed), type=bytes) == packed


@given(doubles)
def test_another_number_becomes_the_nearest_float32_or_none(number: float) -> None:
    try:
        packed = pack([number])
    except ValueError:
        assert abs(number) > 3.4e38
    else:
        assert elements(packed).tolist() == list(struct.unpack("<f", packed))
        assert math.isclose(struct.unpack("<f", packed)[0], number, rel_tol=2**-24, abs_tol=1e-45)


def test_the_bytes_are_little_endian_on_every_machine() -> None:
    packed = bytes.fromhex("0000803f 000000c0 cdcccc3d")
    assert pack([1.0, -2.0, 0.1]) == packed
    assert elements(packed).tolist() == [1.0, -2.0, struct.unpack("<f", packed[8:])[0]]


def test_numbers_have_no_more_digits_than_their_float32() -> None:
    assert shown(pack([0.1, -0.0, 1, 1e-7, 1 / 3])) == b'{"v":[0.1,-0.0,1.0,1e-7,0.33333334]}'


@pytest.mark.parametrize(
    "broken",
    [b"", b"\0\0\0", b"\0" * 7, struct.pack("<f", math.nan), struct.pack("<3f", 1, -math.inf, 2)],
    ids=["nothing", "three bytes", "seven bytes", "no number", "infinity"],
)
def test_what_is_no_vector_is_known(broken: bytes) -> None:
    assert are_whole([pack([1.0])])
    assert not are_whole([pack([1.0]), broken, pack([2.0])])
