"""The limits of a caller's body: counted as by a parser, with any text inside strings."""

import contextlib
import gc
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.laws import modest
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core import json_body_limits
from umg_grpc.wire.core.json_body_limits import MAX_LEVELS, MAX_MEMBERS, MAX_VALUES, check_bounds
from umg_grpc.wire.core.request_body_decoding import SLOW_MARKS, decode_body, decode_form_body, is_slow
from umg_grpc.wire.text_format_interface import BIG_BYTES

TEXTS = st.text(st.sampled_from('"\\[]{},:aé\n'), max_size=6)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=30,
)


def counted(value: object) -> tuple[int, int, int]:
    """Return the number of members of all objects, the number of separators and brackets, and the depth."""
    if not isinstance(value, list | dict):
        return 0, 0, 0
    inner = [counted(item) for item in (value if isinstance(value, list) else value.values())]
    members = sum(each[0] for each in inner) + (len(value) if isinstance(value, dict) else 0)
    values = sum(each[1] for each in inner) + max(1, len(value))
    return members, values, 1 + max((each[2] for each in inner), default=0)


@given(VALUES, st.integers(1, 9))
@modest
def test_a_body_is_accepted_at_its_limit_and_refused_beyond(value: object, step: int) -> None:
    body = msgspec.json.encode([value] * 40)
    expected = members, values, levels = counted([value] * 40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_body_limits, "STEP_BYTES", step)
        for name, bound in (("MAX_MEMBERS", members), ("MAX_VALUES", values), ("MAX_LEVELS", levels)):
            patch.setattr(json_body_limits, name, bound)
        patch.setattr(json_body_limits, "_TOO_DEEP", b"[" * (levels + 1))
        check_bounds(body)
        for name, bound in zip(("MAX_MEMBERS", "MAX_VALUES", "MAX_LEVELS"), expected, strict=True):
            if bound > 0:
                patch.setattr(json_body_limits, name, bound - 1)
                with pytest.raises(UmgError) as caught:
                    check_bounds(body)
                assert f" {bound - 1} " in caught.value.message
                patch.setattr(json_body_limits, name, bound)


@dataclass(frozen=True)
class Bounded:
    id: str
    body: bytes
    message: str = ""


BOUNDED = [
    Bounded("as many members as are taken", b"{%b}" % b",".join([b'"a":1'] * MAX_MEMBERS)),
    Bounded("one more", b"{%b}" % b",".join([b'"a":1'] * (MAX_MEMBERS + 1)), "more than 100000 members"),
    Bounded("as many values", b"[%b]" % b",".join([b"1"] * MAX_VALUES)),
    Bounded("one value more", b"[%b]" % b",".join([b"1"] * (MAX_VALUES + 1)), "more than 500000 values"),
    Bounded("as deep", b"[" * MAX_LEVELS + b"]" * MAX_LEVELS),
    Bounded("one level more", b"[" * (MAX_LEVELS + 1) + b"]" * (MAX_LEVELS + 1), "deeper than 200 levels"),
    Bounded("one level more, with others beside", b"[[],1," * 201 + b"1" + b"]" * 201, "deeper than 200 levels"),
    Bounded("structure inside a string", b'{"a":"%b"}' % (b'[{,:\\"' * 300_000)),
    Bounded("no end of a string", b'{"a":"' + b"[" * 600_000),
    Bounded("brackets that nothing closes", b"[" * 300_000),
    Bounded("brackets that nothing opened", b"]" * 300_000 + b"[[" * 101),
    Bounded("nothing", b""),
]


@pytest.mark.parametrize("case", BOUNDED, ids=lambda case: case.id)
def test_the_bounds_of_a_body(case: Bounded) -> None:
    if not case.message:
        check_bounds(case.body)
        return
    with pytest.raises(UmgError) as caught:
        check_bounds(case.body)
    assert caught.value.reason == pb.ERROR_REASON_MALFORMED_BODY
    assert case.message in caught.value.message


def test_a_body_of_many_bytes_or_members_is_slow() -> None:
    assert [is_slow(b"x" * size) for size in (BIG_BYTES - 1, BIG_BYTES)] == [False, True]
    assert [is_slow(b":," * (SLOW_MARKS // 2 - less)) for less in (1, 0)] == [False, True]


def test_a_decoder_gets_the_body_and_its_headers_and_its_own_error_is_raised() -> None:
    def decode(body: bytes, headers: Mapping[str, str]) -> tuple[bytes, Mapping[str, str]]:
        if not body:
            raise UmgError(pb.ERROR_REASON_INVALID_FIELD, "why", field="a")
        return body, headers

    assert decode_body(decode, b"{}", {"a": "b"}) == (b"{}", {"a": "b"})
    with pytest.raises(UmgError) as caught:
        decode_body(decode, b"", {})
    assert (caught.value.reason, caught.value.place) == (pb.ERROR_REASON_INVALID_FIELD, "")


class Argument:
    """Argument of a decoder, which a failed call must not keep in memory; bytes have no weak references."""


def decode_nothing(_: bytes, __: object) -> None:
    raise ValueError("no such body")


@pytest.mark.parametrize("read", [decode_body, decode_form_body])
def test_the_error_of_a_body_does_not_keep_the_arguments_of_its_decoder(read: Callable[..., None]) -> None:
    argument = Argument()
    left = weakref.ref(argument)
    gc.disable()
    try:
        with contextlib.suppress(UmgError):
            read(decode_nothing, b"{}", argument)
        del argument
        assert left() is None
    finally:
        gc.enable()
