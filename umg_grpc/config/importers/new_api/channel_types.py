"""Facts about new-api as rows with sources: its types of channels, and the models that it handles specially."""

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.operations_by_model_id import known_operations, operations_named
from umg_grpc.v1 import pb

Kind = Literal["", "azure", "cloudflare", "custom", "pair", "baidu_v2", "aws", "vertex"]


class ChannelType(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Channel type of new-api: presets, protocols for addresses without one, or the reason why it is not converted."""

    type: int
    name: str
    kind: Kind = ""
    """Form of the key and the address; "" for a plain key at a plain address."""
    base_url: str = ""
    """Address of a channel that states none; "" for types without one."""
    present: str = ""
    """Address that replaces an outdated `base_url`; "" if `base_url` is valid."""
    presets: tuple[str, ...] = ()
    """Presets at `base_url`; the first one that serves a model applies."""
    platforms: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Another address of the provider -> presets with that address."""
    plans: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    """Keyword that new-api accepts in place of an address -> address by protocol."""
    paths: Mapping[str, str] = MappingProxyType({})
    """Protocol -> path that new-api adds to the address, for addresses without a preset."""
    auth: Mapping[str, str] | None = None
    """Way of sending the key at addresses without a preset; None is that of the first preset or of the protocol."""
    needs_base_url: bool = False
    needs_key: bool = True
    comment: str = ""
    """Comment on each converted channel at `base_url`."""
    reason: str = ""
    """Reason why it has no counterpart; "" for a type that has one."""
    source: str
    as_of: str


class ModelRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Models that new-api handles specially, or whose operations can be found only in its lists."""

    pattern: str
    """Regular expression of the whole id, in any case."""
    types: tuple[int, ...] = ()
    """Types of channels for which the row holds; empty for all."""
    operations: tuple[str, ...] = ()
    """Names of the operations in `umg.v1`, in lower case; empty if the gateway serves none of them."""
    reason: str = ""
    """Reason why these models are not converted; "" for others."""
    source: str
    as_of: str


class RenamedBedrockModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Id at Amazon Bedrock that new-api sends in place of the id by a model's maker."""

    model: str
    """Regular expression of the whole id of the maker; the first row that matches applies."""
    upstream: str
    """Id at Bedrock; a `*` stands for the maker's id."""
    regions: tuple[str, ...]
    """Prefixes of region names in which the Bedrock id gets a prefix for all regions of the continent."""
    source: str
    as_of: str


class VertexModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Id at Vertex AI that new-api sends in place of the id by a model's maker."""

    model: str
    """Regular expression of the whole id of the maker; the first row that matches applies."""
    becomes: str
    r"""Id at Vertex AI; `\1` is the first group."""
    source: str
    as_of: str


@cache
def channel_types() -> Mapping[int, ChannelType]:
    """Return the types of channels by number."""
    return {row.type: row for row in read_rows("new_api_types", ChannelType)}


@cache
def model_rows() -> tuple[ModelRow, ...]:
    """Return the rows about models."""
    return tuple(read_rows("new_api_models", ModelRow))


CONTINENT_PREFIXES: Mapping[str, str] = MappingProxyType({"us": "us", "eu": "eu", "ap": "apac"})
"""First part of a region's name -> prefix of Bedrock model ids for all regions of that continent."""


@cache
def bedrock_models() -> tuple[RenamedBedrockModel, ...]:
    """Return the rows about models at Amazon Bedrock; the last row applies to newer models."""
    return tuple(read_rows("new_api_bedrock", RenamedBedrockModel))


def bedrock_id(model: str, continent: str) -> str:
    """Return the id at Amazon Bedrock for the maker's id of a model; any other id unchanged. `continent`: first part of
    a region's name, a key of `CONTINENT_PREFIXES`.
    """
    row = next((row for row in bedrock_models() if re.fullmatch(row.model, model)), None)
    if row is None:
        return model
    upstream = row.upstream.replace("*", model)
    return (
        f"{CONTINENT_PREFIXES[continent]}.{upstream}"
        if continent in row.regions and continent in CONTINENT_PREFIXES
        else upstream
    )


@cache
def vertex_models() -> tuple[VertexModel, ...]:
    """Return the rows about models at Vertex AI."""
    return tuple(read_rows("new_api_vertex", VertexModel))


def vertex_id(model: str) -> str:
    """Return the id at Vertex AI for the maker's id of a model; any other id unchanged."""
    matches = ((re.fullmatch(row.model, model), row) for row in vertex_models())
    return next((match.expand(row.becomes) for match, row in matches if match is not None), model)


def operations_of(kind: int, model: str) -> "frozenset[pb.ModelOperation.ValueType] | str":
    """Return the operations of a model in a channel of the type `kind`, or the reason (a text) why none is served."""
    for row in model_rows():
        if (not row.types or kind in row.types) and re.fullmatch(row.pattern, model, re.IGNORECASE):
            if row.reason:
                return row.reason
            return operations_named(row.operations) or UNSERVED_REASON
    found = known_operations(model)
    return TEXT_OPERATIONS if found is None else found or UNSERVED_REASON


TEXT_OPERATIONS = operations_named(["generate"])
UNSERVED_REASON = "its operation (music, realtime or text completions) is not served"
