"""Reasoning state on faces of other formats."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.reasoning_state_conversion import read, show

ANY_TEXT = st.one_of(
    st.text(min_size=1),
    st.binary(min_size=1).map(lambda data: base64.b64encode(data).decode()),
    st.text(min_size=1).map(lambda text: f"umg.native.{text}"),
    st.text(min_size=1).map(lambda text: base64.b64encode(f"umg.chat.{text}".encode()).decode()),
    st.sampled_from(["umg.", "umg.native.", "skip_thought_signature_validator"]),
)


@given(data=ANY_TEXT, maker=st.sampled_from(sorted(TEXT_FORMATS)), face=st.sampled_from(sorted(TEXT_FORMATS)))
def test_state_is_returned_unchanged_through_any_face(data: str, maker: str, face: str) -> None:
    state = pb.ReasoningState(data=data, format=maker)
    assert read(show(state, face), face) == state


@pytest.mark.parametrize("face", TEXT_FORMATS)
def test_a_face_shows_the_state_of_its_own_format_as_it_is(face: str) -> None:
    assert show(pb.ReasoningState(data="RXFR/+8=", format=face), face) == "RXFR/+8="


@pytest.mark.parametrize("face", TEXT_FORMATS)
@pytest.mark.parametrize("maker", TEXT_FORMATS)
def test_state_of_another_format_is_marked_with_the_format(maker: str, face: str) -> None:
    if maker == face:
        return
    marked = f"umg.{maker}.RXFR"
    expected = base64.b64encode(marked.encode()).decode() if face == "native" else marked
    assert show(pb.ReasoningState(data="RXFR", format=maker, channel="a"), face) == expected


def test_a_native_client_may_send_state_back_in_the_other_alphabet_and_without_padding() -> None:
    state = pb.ReasoningState(data="w7/Dv8O/w78+>>??", format="messages")
    encoded = show(state, "native")
    assert any(character in encoded for character in "+/=")
    assert read(encoded.translate(str.maketrans("+/", "-_")).rstrip("="), "native") == state


def test_state_shown_on_native_is_always_base64() -> None:
    encoded = show(pb.ReasoningState(data="skip_thought_signature_validator!", format="native"), "native")
    assert base64.b64decode(encoded, validate=True) == b"umg.native.skip_thought_signature_validator!"
