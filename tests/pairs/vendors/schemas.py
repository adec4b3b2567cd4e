"""JSON schemas of answers, as callers write them."""

from typing import Any

Schema = dict[str, Any]

SIMPLE: Schema = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
ONE_OF: Schema = {
    "type": "object",
    "properties": {
        "shape": {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
                    "required": ["kind", "radius"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {"kind": {"const": "square"}, "side": {"type": "number"}},
                    "required": ["kind", "side"],
                    "additionalProperties": False,
                },
            ]
        }
    },
    "required": ["shape"],
    "additionalProperties": False,
}
WITH_BOUNDS: Schema = {
    "type": "object",
    "properties": {
        "score": {"type": "integer", "minimum": 1, "maximum": 10},
        "word": {"type": "string", "maxLength": 20},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 5},
    },
    "required": ["score", "word", "tags"],
    "additionalProperties": False,
}
NESTED: Schema = {
    "type": "object",
    "properties": {
        "person": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "address": {"type": "object", "properties": {"street": {"type": "string"}}},
            },
            "required": ["name"],
        },
        "friends": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
    },
    "required": ["person"],
}
PYDANTIC: Schema = {
    "$defs": {
        "Color": {"enum": ["red", "green"], "title": "Color", "type": "string"},
        "Item": {
            "properties": {
                "label": {"title": "Label", "type": "string"},
                "price": {"exclusiveMinimum": 0, "title": "Price", "type": "number"},
            },
            "required": ["label", "price"],
            "title": "Item",
            "type": "object",
        },
    },
    "properties": {
        "color": {"$ref": "#/$defs/Color"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "title": "Note"},
        "items": {"items": {"$ref": "#/$defs/Item"}, "title": "Items", "type": "array"},
    },
    "required": ["color", "items"],
    "title": "Order",
    "type": "object",
}
OPEN_API: Schema = {
    "type": "OBJECT",
    "properties": {
        "score": {"type": "INTEGER", "minimum": 1, "maximum": 10},
        "note": {"type": "STRING", "nullable": True},
    },
    "required": ["score"],
    "propertyOrdering": ["score", "note"],
}
