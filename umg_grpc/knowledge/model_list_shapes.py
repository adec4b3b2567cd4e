"""Shapes of providers' model lists: members of an entry with kind, limits, prices and abilities of its model. Pure."""

from collections.abc import Mapping
from functools import cache
from typing import Literal

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows


class ListedCapabilities(Struct, frozen=True, forbid_unknown_fields=True):
    """Members that state the capabilities of a model. They are read only from an entry that has all of them."""

    inputs: str
    outputs: str
    tools: str
    structured_output: str
    reasoning: str


class ListShape(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Paths of the members of an entry in a provider's model list, for example `token_limits.context_window`. A path
    part after a list is a word in that list. Several providers may share members: the first shape that yields a fact
    counts.
    """

    provider: str
    kinds: tuple[str, ...] = ()
    """Members whose words state the kind of a model. The first member with a known word counts."""
    operations: Mapping[str, str] = {}
    """Word for a kind that elsewhere means another operation -> its operation in `umg.v1`, in lower case."""
    unserved: tuple[str, ...] = ()
    """Words for kinds whose operations the gateway does not serve."""
    input_tokens: tuple[str, ...] = ()
    output_tokens: tuple[str, ...] = ()
    prices: Mapping[str, str] = {}
    """Member with a price of tokens in US dollars -> name of the billable unit in `umg.v1`, in lower case."""
    lifecycles: Mapping[str, Mapping[str, Literal["deprecated", "retired"]]] = {}
    """Member with the state of a model -> word for the state -> lifecycle."""
    ends: tuple[str, ...] = ()
    """Members with the day or time at which the provider removes the model."""
    capabilities: ListedCapabilities | None = None
    source: str
    as_of: str


@cache
def list_shapes() -> tuple[ListShape, ...]:
    """Return the shapes, in the order of their precedence."""
    return tuple(read_rows("model_list_shapes", ListShape))
