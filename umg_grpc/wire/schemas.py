"""JSON schemas of tools and answers: full JSON schema, and the subset of it that the native format has."""

import msgspec

from umg_grpc.wire.json import invalid, json_text


def json_schema(schema_json: str, native: bool, field: str) -> object:
    """The schema as JSON schema; one of the native subset with type names in lower case and `nullable` as a union with
    null. Raises UmgError(INVALID_FIELD).
    """
    if not native:
        return json_text(schema_json, field)
    try:
        return _plain(msgspec.json.decode(schema_json))
    except (ValueError, RecursionError):
        raise invalid(field, "it is not one JSON value; correct it") from None


OWN_VALUES = ("default", "example", "enum")  # members of a schema that hold no schemas


def _plain(value: object, names: bool = False) -> object:
    """`names`: whether the keys are the caller's own (`properties`), which stay."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {
        key: item
        if key in OWN_VALUES and not names
        else _plain(item, names=not names and key in ("properties", "defs"))
        for key, item in value.items()
    }
    if names:
        return plain
    if isinstance(kind := plain.get("type"), str):
        plain["type"] = [kind.lower(), "null"] if plain.pop("nullable", False) is True else kind.lower()
    return plain
