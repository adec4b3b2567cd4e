"""Settings, strategies and readers that the laws of every format share."""

from collections.abc import Sequence

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.wire.chat.strategies import additions

modest = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
few = settings(modest, max_examples=20)


@st.composite
def cuts(draw: DrawFn, data: bytes) -> Sequence[bytes]:
    """Draw the bytes in pieces."""
    places = sorted(draw(st.lists(st.integers(0, len(data)), max_size=8)))
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


def sprinkled(value: object, data: st.DataObject) -> object:
    """Return the document with unknown fields at every level."""
    if isinstance(value, list):
        return [sprinkled(item, data) for item in value]
    if isinstance(value, dict):
        return {name: sprinkled(item, data) for name, item in value.items()} | data.draw(additions)
    return value


def members(document: bytes) -> dict[str, bytes]:
    """Return the fields of an object, each to the byte."""
    return {name: bytes(raw) for name, raw in msgspec.json.decode(document, type=dict[str, msgspec.Raw]).items()}


def present_members(document: bytes) -> dict[str, bytes]:
    """Return the fields that are not null, since null counts as absent."""
    return {name: raw for name, raw in members(document).items() if raw != b"null"}
