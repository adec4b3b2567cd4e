"""Settings, strategies and readers that the laws of every format share."""

from collections.abc import Sequence
from itertools import cycle

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.unit.wire.chat.strategies import additions

modest = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
few = settings(modest, max_examples=20)


@st.composite
def cuts(draw: DrawFn, data: bytes) -> Sequence[bytes]:
    """Draw the bytes in pieces."""
    places = sorted(draw(st.lists(st.integers(0, len(data)), max_size=8)))
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


def sprinkled(document: object, data: st.DataObject) -> object:
    """Return the JSON document, or the list of them, with unknown fields at every level.

    The levels take turns with a few objects of fields, as many draws take long; the names differ at each level.
    """
    turns = enumerate(cycle(data.draw(st.lists(additions, min_size=2, max_size=8))))

    def grown(value: object) -> object:
        if isinstance(value, list):
            return [grown(item) for item in value]
        if isinstance(value, dict):
            level, added = next(turns)
            unknown = {f"{name}_{level}": inner for name, inner in added.items()}
            return {name: grown(item) for name, item in value.items()} | unknown
        return value

    return grown(document)


def members(document: bytes) -> dict[str, bytes]:
    """Return the fields of an object, each to the byte."""
    return {name: bytes(raw) for name, raw in msgspec.json.decode(document, type=dict[str, msgspec.Raw]).items()}


def present_members(document: bytes) -> dict[str, bytes]:
    """Return the fields that are not null, since null counts as absent."""
    return {name: raw for name, raw in members(document).items() if raw != b"null"}
