"""Rules of `buf.validate` on fields of the schema, as keywords of JSON schemas."""

from collections.abc import Mapping
from types import MappingProxyType

from buf.validate.validate_pb2 import FieldRules
from buf.validate.validate_pb2 import field as field_rules
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from umg_grpc.wire.core.json_decoding import JsonObject

_KEYWORDS: Mapping[str, str] = MappingProxyType(
    {
        "gte": "minimum",
        "gt": "exclusiveMinimum",
        "lte": "maximum",
        "lt": "exclusiveMaximum",
        "min_len": "minLength",
        "max_len": "maxLength",
        "pattern": "pattern",
        "min_items": "minItems",
        "max_items": "maxItems",
        "min_pairs": "minProperties",
        "max_pairs": "maxProperties",
    }
)
_OF_KEYWORDS = frozenset({"string", "int32", "int64", "uint32", "uint64", "float", "double", "repeated", "map"})
"""Kinds of rules that have keywords. Lengths of `bytes` count bytes, and a JSON schema those of their base64."""


def bounds(field: FieldDescriptor) -> JsonObject:
    """Return the keywords of a field's own rules."""
    return _keywords(_rules(field))


def item_bounds(field: FieldDescriptor) -> JsonObject:
    """Return the keywords of the rules of a repeated field's items."""
    return _keywords(_rules(field).repeated.items)


def is_required(field: FieldDescriptor) -> bool:
    """Return whether a message without the field is refused."""
    rules = _rules(field)
    return rules.required or (not field.has_presence and (rules.string.min_len > 0 or rules.repeated.min_items > 0))


def is_finite(field: FieldDescriptor) -> bool:
    """Return whether a number must be finite."""
    return _rules(field).double.finite


def with_bounds(schema: JsonObject, keywords: JsonObject) -> JsonObject:
    """Return a schema with keywords; of alternatives the last one has them, which is the number."""
    if not keywords:
        return schema
    if isinstance(kinds := schema.get("anyOf"), list):
        return {**schema, "anyOf": [*kinds[:-1], {**kinds[-1], **keywords}]}
    return {**schema, **keywords}


def _rules(field: FieldDescriptor) -> FieldRules:
    return field.GetOptions().Extensions[field_rules]


def _keywords(rules: FieldRules) -> JsonObject:
    kind = rules.WhichOneof("type")
    if kind not in _OF_KEYWORDS:
        return {}
    found: Message = getattr(rules, kind)
    return {_KEYWORDS[rule.name]: value for rule, value in found.ListFields() if rule.name in _KEYWORDS}
