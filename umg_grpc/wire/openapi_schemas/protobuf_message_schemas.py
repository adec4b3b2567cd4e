"""JSON schemas of the protobuf messages, for the OpenAPI document: in ProtoJSON for the Connect protocol, and in the
JSON of `protobuf_json.py` for the administration. Descriptions are the comments of the .proto files.
"""

from collections.abc import Mapping
from types import MappingProxyType

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from umg_grpc.v1.comments import comments
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.openapi_schemas.encoded_bodies import nullable
from umg_grpc.wire.openapi_schemas.validation_rules import bounds, is_finite, is_required, item_bounds, with_bounds
from umg_grpc.wire.protobuf_json import SECONDS_SUFFIX, enum_names

_STRING: JsonObject = {"type": "string"}
_TIME: JsonObject = {"type": "string", "format": "date-time"}
_SCALARS: Mapping[int, JsonObject] = MappingProxyType(
    {
        FieldDescriptor.CPPTYPE_INT32: {"type": "integer", "format": "int32"},
        FieldDescriptor.CPPTYPE_UINT32: {"type": "integer", "format": "int32", "minimum": 0},
        FieldDescriptor.CPPTYPE_INT64: {"type": "integer", "format": "int64"},
        FieldDescriptor.CPPTYPE_UINT64: {"type": "integer", "format": "int64", "minimum": 0},
        FieldDescriptor.CPPTYPE_DOUBLE: {"type": "number"},
        FieldDescriptor.CPPTYPE_FLOAT: {"type": "number"},
        FieldDescriptor.CPPTYPE_BOOL: {"type": "boolean"},
        FieldDescriptor.CPPTYPE_STRING: _STRING,
    }
)
_WIDE = frozenset({FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64})
_DOUBLES = frozenset({FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT})
_DURATION, _TIMESTAMP = "google.protobuf.Duration", "google.protobuf.Timestamp"


class ProtoJsonSchemas:
    """Builder of JSON schemas in ProtoJSON, for the Connect protocol. It adds an OpenAPI component for each message and
    enum. In ProtoJSON a member that is not set is absent, and 64-bit integers are strings.
    """

    known: Mapping[str, JsonObject] = MappingProxyType(
        {
            _TIMESTAMP: _TIME,
            _DURATION: {"type": "string", "pattern": r"^-?\d+(\.\d+)?s$"},
            "google.protobuf.FieldMask": _STRING,
        }
    )
    prefix = ""

    def __init__(self, components: JsonObject) -> None:
        """Create a builder that adds the schemas of messages and enums to `components` (name -> schema), in place."""
        self._components = components

    def schema(self, message: Descriptor) -> JsonObject:
        """Return `{"$ref": ...}` to the component of a message. The component is added, with all that it refers to."""
        if (known := self.known.get(message.full_name)) is not None:
            return known
        name = self.prefix + message.full_name
        if name not in self._components:
            self._components[name] = {}  # a message may contain itself
            self._components[name] = self._message(message)
        return {"$ref": f"#/components/schemas/{name}"}

    def _message(self, message: Descriptor) -> JsonObject:
        properties = {self._name(field): self._property(field) for field in message.fields}
        required = [self._name(field) for field in message.fields if is_required(field)]
        schema: JsonObject = {"type": "object", "properties": properties}
        return _described(schema | ({"required": required} if required else {}), message.full_name)

    def _name(self, field: FieldDescriptor) -> str:
        return str(field.json_name)

    def _property(self, field: FieldDescriptor) -> JsonObject:
        return _described(self._field(field), field.full_name)

    def _field(self, field: FieldDescriptor) -> JsonObject:
        message = field.message_type
        if message is not None and message.GetOptions().map_entry:
            return {"type": "object", "additionalProperties": self._value(message.fields_by_name["value"])}
        value = self._value(field)
        if field.is_repeated:
            return {"type": "array", "items": with_bounds(value, item_bounds(field)), **bounds(field)}
        return with_bounds(value, bounds(field))

    def _value(self, field: FieldDescriptor) -> JsonObject:
        if field.message_type is not None:
            return self.schema(field.message_type)
        if field.enum_type is not None:
            return self._enum(field.enum_type)
        if field.type == FieldDescriptor.TYPE_BYTES:
            return {"type": "string", "contentEncoding": "base64"}
        return self._scalar(field)

    def _scalar(self, field: FieldDescriptor) -> JsonObject:
        scalar = _SCALARS[field.cpp_type]
        if field.cpp_type in _WIDE:
            return {"anyOf": [{"type": "string", "pattern": r"^-?\d{1,20}$"}, scalar]}
        if field.cpp_type in _DOUBLES and not is_finite(field):
            return {"anyOf": [scalar, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
        return scalar

    def _enum(self, kind: EnumDescriptor) -> JsonObject:
        """Return an enum's schema: a value's name, or an integer, which newer gateways send for values unknown here."""
        name = self.prefix + kind.full_name
        if name not in self._components:
            names = {value.number: value.name for value in kind.values}
            anyof = [{"type": "string", "enum": list(names.values())}, {"type": "integer", "format": "int32"}]
            self._components[name] = {"anyOf": anyof, "description": _values(kind, names)}
        return {"$ref": f"#/components/schemas/{name}"}


class PlainSchemas(ProtoJsonSchemas):
    """Builder of schemas in the administration API's JSON, where every member is present, null if it is not set."""

    known = MappingProxyType({_TIMESTAMP: _TIME, _DURATION: {"type": "number"}})
    prefix = "admin."

    def _message(self, message: Descriptor) -> JsonObject:
        return super()._message(message) | {"required": [self._name(field) for field in message.fields]}

    def _name(self, field: FieldDescriptor) -> str:
        is_duration = field.message_type is not None and field.message_type.full_name == _DURATION
        return field.name + SECONDS_SUFFIX if is_duration else field.name

    def _property(self, field: FieldDescriptor) -> JsonObject:
        value = self._field(field)
        may_be_null = field.has_presence or (field.enum_type is not None and 0 not in enum_names(field.enum_type))
        return _described(nullable(value) if may_be_null and not field.is_repeated else value, field.full_name)

    def _scalar(self, field: FieldDescriptor) -> JsonObject:
        return _SCALARS[field.cpp_type]

    def _enum(self, kind: EnumDescriptor) -> JsonObject:
        """Return an enum's schema: any string, since a newer gateway may send values that this version lacks."""
        return {"type": "string", "description": _values(kind, enum_names(kind))}


def _described(schema: JsonObject, name: str) -> JsonObject:
    text = comments().get(name)
    return schema if text is None else {**schema, "description": text}


def _values(kind: EnumDescriptor, names: Mapping[int, str]) -> str:
    """Return the comment of an enum, and of each of its values. `names`: names of the values in the JSON."""
    known = comments()
    values = {value.number: known.get(f"{kind.full_name}.{value.name}", "") for value in kind.values}
    lines = [f"- `{name}`: {values[number]}" for number, name in names.items()]
    return "\n".join([known.get(kind.full_name, ""), *lines]).strip()
