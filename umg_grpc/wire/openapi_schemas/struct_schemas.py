"""JSON schemas of msgspec types and of `EncodedBody` samples, for the OpenAPI document. `msgspec.json.schema` cannot
make them: it fails for fields of type `msgspec.Raw` (any JSON) with a default, which most bodies have.
"""

import inspect
from types import UnionType

import msgspec
from msgspec import inspect as described

from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.openapi_schemas.encoded_bodies import EncodedBody, nullable, schema_of

_BOUNDS = {
    "ge": "minimum",
    "le": "maximum",
    "gt": "exclusiveMinimum",
    "lt": "exclusiveMaximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
}


class File(msgspec.Struct):
    """Uploaded file: marks a field of a form whose schema is `{"type": "string", "format": "binary"}`."""


class StructSchemas:
    """Builder of the JSON schemas of msgspec types; adds one OpenAPI component `<format>.<struct>` for each struct."""

    def __init__(self, components: JsonObject) -> None:
        """Create a builder that adds the components of structs to `components` (name -> schema), in place."""
        self._components = components
        self._names: dict[type, str] = {}

    def schema(self, kind: object) -> JsonObject:
        """Return the JSON schema of a type or an `EncodedBody`, or of a union or tuple of these (even of several
        structs, which msgspec forbids). A struct or body becomes a reference to its component. Raise TypeError for a
        type without a schema.
        """
        if isinstance(kind, EncodedBody):
            if kind.name not in self._components:
                self._components[kind.name] = schema_of(kind)
            return {"$ref": f"#/components/schemas/{kind.name}"}
        if isinstance(kind, UnionType | tuple):
            members = kind if isinstance(kind, tuple) else kind.__args__
            found = [self.schema(member) for member in members]
            return {"anyOf": found} if len(found) > 1 else found[0]
        return self._of(described.type_info(kind))

    def _of(self, kind: described.Type) -> JsonObject:  # noqa: PLR0912  one case a kind of type
        match kind:
            case described.Metadata():
                return self._of(kind.type) | (kind.extra_json_schema or {})
            case described.StructType() if kind.cls is File:
                return {"type": "string", "format": "binary"}
            case described.StructType():
                return self._reference(kind)
            case described.UnionType():
                return self._union(kind)
            case described.ListType() | described.VarTupleType():
                bounds = {"min_length": "minItems", "max_length": "maxItems"}
                found = {key: getattr(kind, name) for name, key in bounds.items() if getattr(kind, name) is not None}
                return {"type": "array", "items": self._of(kind.item_type), **found}
            case described.DictType():
                return {"type": "object", "additionalProperties": self._of(kind.value_type)}
            case described.LiteralType():
                return {"type": "string", "enum": list(kind.values)}
            case described.StrType():
                return {"type": "string", **_bounds(kind)}
            case described.IntType():
                return {"type": "integer", **_bounds(kind)}
            case described.FloatType():
                return {"type": "number", **_bounds(kind)}
            case described.BoolType():
                return {"type": "boolean"}
            case described.NoneType():
                return {"type": "null"}
            case described.BytesType():
                return {"type": "string", "contentEncoding": "base64"}
            case described.DateTimeType():
                return {"type": "string", "format": "date-time"}
            case described.AnyType() | described.RawType():
                return {}
            case _:  # kinds of msgspec that no struct of ours has
                raise TypeError(f"no schema is known for {kind}")

    def _union(self, kind: described.UnionType) -> JsonObject:
        """Return the schema of a union; `{}` if a member of the union is any JSON. A float beside an integer is
        omitted, since it is there only to accept integers written as `5.0`.
        """
        kinds = kind.types
        if any(isinstance(part, described.IntType) for part in kinds):
            kinds = tuple(part for part in kinds if not isinstance(part, described.FloatType))
        found = [self._of(part) for part in kinds if not isinstance(part, described.NoneType)]
        if not all(found):
            return {}  # any value
        if len(found) < len(kinds):
            return nullable(*found)
        return {"anyOf": found} if len(found) > 1 else found[0]

    def _reference(self, kind: described.StructType) -> JsonObject:
        return {"$ref": f"#/components/schemas/{self._component(kind)}"}

    def _component(self, kind: described.StructType) -> str:
        """Return the name of a struct's component. The first call for a struct adds the component."""
        if (known := self._names.get(kind.cls)) is not None:
            return known
        name = f"{_package(kind.cls)}.{kind.cls.__name__}"
        if name in self._components:
            raise ValueError(f"two types are named {name}")
        self._names[kind.cls] = name
        self._components[name] = {}  # a struct may contain itself
        properties = {
            field.encode_name: self._of(field.type) | _default(field)
            for field in kind.fields
            if not field.encode_name.startswith("(")  # set by a decoder, no member of a body
        }
        schema: JsonObject = {"type": "object", "properties": properties}
        if text := inspect.getdoc(kind.cls):
            schema["description"] = text
        if required := [field.encode_name for field in kind.fields if field.required]:
            schema["required"] = required
        if kind.forbid_unknown_fields:
            schema["additionalProperties"] = False
        self._components[name] = schema
        return name


def _default(field: described.Field) -> JsonObject:
    """Return the default that callers may rely on: none for a member whose absence has a meaning of its own."""
    is_value = isinstance(field.default, bool | int | float | str) and field.default != ""
    return {"default": field.default} if is_value else {}


def _package(kind: type) -> str:
    package, _, module = kind.__module__.removeprefix("umg_grpc.wire.").partition(".")
    return module.removesuffix("_response_types") if package == "openapi_schemas" else package


def _bounds(kind: described.StrType | described.IntType | described.FloatType) -> JsonObject:
    return {key: value for name, key in _BOUNDS.items() if (value := getattr(kind, name, None)) is not None}
