"""Rules of vendors that enforce a JSON schema while the model writes: the subset of keywords that each accepts."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from umg_grpc.wire.core.schema_dialects.schema_keywords import NUMBER_TYPES

STRING_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)  # fmt: skip
NUMBER_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


@dataclass(frozen=True, kw_only=True)
class Subset:
    """Rules of a vendor for schemas that it enforces."""

    constraints: Mapping[str, tuple[str, ...]]
    """Type -> keywords that are accepted for it."""
    formats: frozenset[str]
    max_minimum_items: int | None
    names_types: bool
    """Whether a schema with listed values states their type, and whether `type` may be a list."""
    requires_all: bool
    """Whether all properties must be required; an optional one then accepts null instead."""
    recursive: bool
    object_root: bool
    any_items: bool
    """Whether the items of a list may be of any kind."""
    takes_defaults: bool
    max_optional: int | None


CLAUDE_SUBSET = Subset(
    constraints=MappingProxyType({"array": ("minItems",)}),
    formats=STRING_FORMATS,
    max_minimum_items=1,
    names_types=False,
    requires_all=False,
    recursive=False,
    object_root=False,
    any_items=True,
    takes_defaults=True,
    max_optional=10,
)
"""Claude (anthropic 2.14.0, `lib/_parse/_transform.py`; @ai-sdk/anthropic 4.0.105,
`supports-native-structured-output-schema.ts`): more than 24 optional properties are rejected, and compilation fails
from 11 on (Vertex).
"""
OPENAI_SUBSET = Subset(
    constraints=MappingProxyType(
        {**dict.fromkeys(NUMBER_TYPES, NUMBER_BOUNDS), "string": ("pattern",), "array": ("minItems", "maxItems")}
    ),
    formats=STRING_FORMATS - {"uri"},
    max_minimum_items=None,
    names_types=True,
    requires_all=True,
    recursive=True,
    object_root=True,
    any_items=False,
    takes_defaults=False,
    max_optional=None,
)
"""OpenAI (openai 3.57.0, `lib/_pydantic.py`, and the vendor's page "Structured Outputs", supported schemas)."""
