"""JSON schemas of tools and answers: full JSON schema, and the subset of it that the native format has."""

import msgspec

from umg_grpc.wire.json import JsonObject, invalid, json_text

OWN_VALUES = ("default", "example", "enum")  # members of a schema that hold no schemas
NAMED = ("properties", "defs", "$defs")  # members whose keys are the caller's own
COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")  # 64 bits: text in native
SPELLINGS = {
    "any_of": "anyOf",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "property_ordering": "propertyOrdering",
    "additional_properties": "additionalProperties",
    "defs": "$defs",
    "ref": "$ref",
}


def json_schema(schema_json: str, native: bool, field: str) -> object:
    """The schema as JSON schema; one of the native subset in its words: type names in lower case, `nullable` as a union
    with null, counts as numbers, definitions where references look for them. What is no schema stays as it is.

    Raises UmgError(INVALID_FIELD) for what is not one JSON value.
    """
    if not native:
        return json_text(schema_json, field)
    try:
        return _plain(msgspec.json.decode(schema_json))
    except (ValueError, RecursionError):
        raise invalid(field, "it is not one JSON value; correct it") from None


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = JsonObject()
    for key, item in value.items():
        name = SPELLINGS.get(str(key), str(key))
        if key in OWN_VALUES:
            plain[name] = item
        elif key in NAMED and isinstance(item, dict):
            plain[name] = {own: _plain(inner) for own, inner in item.items()}
        elif name == "$ref" and isinstance(item, str):
            plain[name] = item.replace("#/defs/", "#/$defs/")
        elif name in COUNTS and isinstance(item, str) and item.isdecimal():
            plain[name] = int(item)
        else:
            plain[name] = _plain(item)
    _name_types(plain)
    _order(plain)
    if plain.pop("nullable", False) is True:
        _allow_null(plain)
    return plain


def _name_types(schema: JsonObject) -> None:
    kinds = schema.get("type")
    if isinstance(kinds, str) and kinds.upper() == "TYPE_UNSPECIFIED":
        del schema["type"]
    elif isinstance(kinds, str):
        schema["type"] = kinds.lower()
    elif isinstance(kinds, list):
        schema["type"] = [kind.lower() if isinstance(kind, str) else kind for kind in kinds]


def _order(schema: JsonObject) -> None:
    """JSON schema has no word for an order; models follow that in which the properties stand."""
    names, properties = schema.pop("propertyOrdering", None), schema.get("properties")
    if isinstance(names, list) and isinstance(properties, dict):
        first = {name: properties[name] for name in names if isinstance(name, str) and name in properties}
        schema["properties"] = first | properties


def _allow_null(schema: JsonObject) -> None:
    kinds, choices, values = schema.get("type"), schema.get("anyOf"), schema.get("enum")
    if isinstance(kinds, str) and kinds != "null":
        schema["type"] = [kinds, "null"]
    elif isinstance(kinds, list) and "null" not in kinds:
        schema["type"] = [*kinds, "null"]
    if isinstance(choices, list):
        schema["anyOf"] = [*choices, {"type": "null"}]
    if isinstance(values, list) and None not in values:
        schema["enum"] = [*values, None]
