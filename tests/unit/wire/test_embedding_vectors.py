"""Vectors in transit: packed float32, little-endian, to the last bit."""

import base64
import json
import math
import struct
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umg_grpc.wire.core.embedding_vectors import (
    PIECE_BYTES,
    SLICE_BYTES,
    are_whole,
    count_either,
    count_numbers,
    elements,
    from_either,
    json_pieces,
    json_with_numbers,
    pack,
    shorten,
    slices,
)

singles = st.floats(width=32, allow_nan=False, allow_infinity=False)
doubles = st.floats(allow_nan=False, allow_infinity=False)


def encoded(packed: bytes) -> bytes:
    return json_with_numbers({"v": elements(packed)})


def read(document: bytes) -> list[float]:
    return msgspec.json.decode(document, type=dict[str, list[float]])["v"]


@given(st.lists(singles, min_size=1))
def test_a_float32_is_unchanged_after_encoding_and_decoding(numbers: list[float]) -> None:
    packed = pack(numbers)
    assert packed == struct.pack(f"<{len(numbers)}f", *numbers)
    assert pack(read(encoded(packed))) == packed
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
    assert encoded(pack([0.1, -0.0, 1, 1e-7, 1 / 3])) == b'{"v":[0.1,-0.0,1.0,1e-7,0.33333334]}'


@pytest.mark.parametrize(
    "broken",
    [b"", b"\0\0\0", b"\0" * 7, struct.pack("<f", math.nan), struct.pack("<3f", 1, -math.inf, 2)],
    ids=["nothing", "three bytes", "seven bytes", "no number", "infinity"],
)
def test_an_invalid_vector_is_detected(broken: bytes) -> None:
    assert are_whole([pack([1.0])])
    assert not are_whole([pack([1.0]), broken, pack([2.0])])


@given(st.lists(singles, min_size=1), st.sampled_from([(",", ":"), (", ", ": ")]))
def test_the_numbers_of_a_vector_are_counted_without_reading_it(
    numbers: list[float], separators: tuple[str, str]
) -> None:
    array = json.dumps(numbers, separators=separators).encode()
    assert count_numbers(array) == count_either(array) == len(numbers)
    assert count_either(b'"%b"' % base64.b64encode(pack(numbers))) == len(numbers)


@pytest.mark.parametrize(
    "text",
    [
        *(b"[]", b"[ ]", b"[\n\t\r]", b"null", b"1", b"{}", b'""', b'"AAAA"', b'"AAAAAAA="', b'"AAAAAAAA"', b'"!"'),
        *(b"[null]", b"[1,null]", b"[true]", b"[1,false]", b'["1"]', b"[1,{}]", b"[[1]]", b"[1,[2]]"),
    ],
)
def test_an_invalid_vector_has_no_numbers(text: bytes) -> None:
    assert count_either(text) == 0


@pytest.mark.parametrize("vectors", [0, 1, 2, 7, 300])
def test_json_in_pieces_is_the_json_of_all(vectors: int) -> None:
    packed = [pack([float(place)] * 1024) for place in range(vectors)]

    def item(place: int, vector: bytes) -> dict[str, object]:
        return {"at": place, "v": elements(vector)}

    pieces = list(json_pieces(b'{"all":[', packed, item, json_with_numbers, b"]}"))
    whole = json_with_numbers({"all": [item(place, vector) for place, vector in enumerate(packed)]})
    assert b"".join(pieces) == whole
    assert len(pieces) == max(1, math.ceil(vectors * 4096 / PIECE_BYTES))


def test_the_pieces_of_a_body_join_to_the_body() -> None:
    for size in (1, SLICE_BYTES, SLICE_BYTES + 1, 3 * SLICE_BYTES + 5):
        body = bytes(range(256)) * (size // 256 + 1)
        assert b"".join(slices(body[:size])) == body[:size]
        assert len(list(slices(body[:size]))) == math.ceil(size / SLICE_BYTES)


@dataclass(frozen=True)
class Form:
    id: str
    written: object
    numbers: list[float]


FORMS = [
    Form("numbers", [0.5, -1, 2], [0.5, -1.0, 2.0]),
    Form("base64", base64.b64encode(pack([0.5, -1.0])).decode(), [0.5, -1.0]),
    Form("base64 for URLs, without padding", base64.urlsafe_b64encode(pack([-1e-9, 3.0])).decode().rstrip("="), [-1e-9, 3.0]),
    Form("texts", ["0.5", "-1", "2e0"], [0.5, -1.0, 2.0]),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.id)
def test_a_vector_is_read_in_each_form_that_providers_write(form: Form) -> None:
    assert from_either(msgspec.Raw(json.dumps(form.written).encode())) == pack(form.numbers)


@pytest.mark.parametrize(
    "written", [[[1.0]], ["x"], [1.0, "2"], "zz zz", "A", None, {"float": [1.0]}, [None], [True, "1"]]
)
def test_any_other_value_is_no_vector(written: object) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011  # errors of JSON, of base64 and of numbers
        from_either(msgspec.Raw(json.dumps(written).encode()))
    assert str(raised.value)


def test_a_normalized_vector_is_normalized_again_when_it_is_cut() -> None:
    cut = elements(shorten(pack([0.6, 0.0, 0.8]), 2))
    assert cut.tolist() == pytest.approx([1.0, 0.0])
    assert elements(shorten(pack([3.0, 4.0, 5.0]), 2)).tolist() == [3.0, 4.0]
    assert elements(shorten(pack([0.0, 0.0, 1.0]), 2)).tolist() == [0.0, 0.0]
