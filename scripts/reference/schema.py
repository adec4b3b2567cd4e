"""Reference page of the gRPC schema: services, messages and enums of `umg.v1` with their comments, from the .proto
files.
"""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import grpc_tools
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)
from grpc_tools import protoc

from scripts.reference.markdown import code, paragraph, table

ROOT = Path(__file__).parents[2]
INCLUDES = (ROOT / "proto", ROOT / "third_party", Path(grpc_tools.__file__).parent / "_proto")
PACKAGE = ".umg.v1."

# Numbers of the members of descriptors, of which the paths of comments consist.
MESSAGES, ENUMS, SERVICES = 4, 5, 6  # of a file
METHODS, FIELDS, NESTED, NESTED_ENUMS, VALUES = 2, 2, 3, 4, 2  # of a service, a message and an enum


@dataclass(frozen=True)
class Member:
    """Method of a service, field of a message, or value of an enum."""

    name: str
    kind: str
    """Type of a field, request and response of a method, or number of a value, in Markdown."""
    description: str


@dataclass(frozen=True)
class Definition:
    """Service, message or enum with its members."""

    name: str
    """Name without the package; that of a nested one follows the name of its message and a dot."""
    description: str
    members: tuple[Member, ...]


@dataclass(frozen=True)
class Schema:
    """All definitions of the package, in the order of their names."""

    services: tuple[Definition, ...]
    messages: tuple[Definition, ...]
    enums: tuple[Definition, ...]


@cache
def schema() -> Schema:
    """Return the schema, compiled from its files."""
    services, messages, enums = [], [], []
    for file in _files():
        comments = _comments(file)
        services += [_service(each, comments, (SERVICES, at)) for at, each in enumerate(file.service)]
        for at, message in enumerate(file.message_type):
            for found in _messages(message, comments, (MESSAGES, at), ""):
                (messages if isinstance(found[0], DescriptorProto) else enums).append(found[1])
        enums += [_enum(each, comments, (ENUMS, at), "") for at, each in enumerate(file.enum_type)]
    return Schema(*(tuple(sorted(found, key=lambda each: each.name)) for found in (services, messages, enums)))


def _files() -> list[FileDescriptorProto]:
    names = sorted(str(path.relative_to(ROOT / "proto")) for path in (ROOT / "proto/umg").rglob("*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "schema.binpb"
        arguments = [*(f"-I{path}" for path in INCLUDES), "--include_source_info", f"-o{made}", *names]
        if protoc.main(["protoc", *arguments]) != 0:
            raise RuntimeError("protoc cannot compile proto/umg; its messages are above")
        return list(FileDescriptorSet.FromString(made.read_bytes()).file)


Comments = Mapping[tuple[int, ...], str]


def _comments(file: FileDescriptorProto) -> Comments:
    return {tuple(each.path): _text(each.leading_comments) for each in file.source_code_info.location}


def _text(comment: str) -> str:
    return "\n".join(line.strip() for line in comment.strip().splitlines())


def _service(service: ServiceDescriptorProto, comments: Comments, path: tuple[int, ...]) -> Definition:
    methods = []
    for at, method in enumerate(service.method):
        streams = "stream of " if method.server_streaming else ""
        kind = f"{_link(method.input_type)} → {streams}{_link(method.output_type)}"
        methods.append(Member(method.name, kind, comments.get((*path, METHODS, at), "")))
    return Definition(service.name, comments.get(path, ""), tuple(methods))


def _messages(
    message: DescriptorProto, comments: Comments, path: tuple[int, ...], prefix: str
) -> Iterator[tuple[DescriptorProto | EnumDescriptorProto, Definition]]:
    """Yield a message and the messages and enums in it."""
    name = f"{prefix}{message.name}"
    maps = {f".{each.name}": each for each in message.nested_type if each.options.map_entry}
    fields = tuple(
        Member(field.name, _type(message, field, maps), comments.get((*path, FIELDS, at), ""))
        for at, field in enumerate(message.field)
    )
    yield message, Definition(name, comments.get(path, ""), fields)
    for at, nested in enumerate(message.nested_type):
        if not nested.options.map_entry:
            yield from _messages(nested, comments, (*path, NESTED, at), f"{name}.")
    for at, enum in enumerate(message.enum_type):
        yield enum, _enum(enum, comments, (*path, NESTED_ENUMS, at), f"{name}.")


def _enum(enum: EnumDescriptorProto, comments: Comments, path: tuple[int, ...], prefix: str) -> Definition:
    values = tuple(
        Member(value.name, str(value.number), comments.get((*path, VALUES, at), ""))
        for at, value in enumerate(enum.value)
    )
    return Definition(f"{prefix}{enum.name}", comments.get(path, ""), values)


def _type(message: DescriptorProto, field: FieldDescriptorProto, maps: Mapping[str, DescriptorProto]) -> str:
    """Return the type of a field as the .proto file has it, and the oneof that it belongs to."""
    entry = next((each for name, each in maps.items() if field.type_name.endswith(name)), None)
    if entry is not None:
        key, value = (_type(entry, each, {}) for each in entry.field)
        return f"map of {key} to {value}"
    name = _link(field.type_name) if field.type_name else code(FieldDescriptorProto.Type.Name(field.type)[5:].lower())
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"repeated {name}"
    if field.proto3_optional:
        return f"optional {name}"
    if field.HasField("oneof_index"):
        return f"{name}, one of {code(message.oneof_decl[field.oneof_index].name)}"
    return name


def _link(name: str) -> str:
    own = name.removeprefix(PACKAGE)
    return code(name.lstrip(".")) if own == name else f"[`{own}`](#{_anchor(own)})"


def _anchor(name: str) -> str:
    return name.lower().replace(".", "")


HEAD = """# gRPC

Every service, message and enum of the package `umg.v1`, with the comments of its [schema](../../proto/README.md).
Server reflection serves the same definitions. [The Connect protocol](../connect.md) calls the methods over plain HTTP.
"""


def page() -> str:
    """Return the reference page of the schema, as Markdown."""
    found, text = schema(), HEAD
    for title, definitions, head in (
        ("Services", found.services, ("method", "request → response", "meaning")),
        ("Messages", found.messages, ("field", "type", "meaning")),
        ("Enums", found.enums, ("value", "number", "meaning")),
    ):
        text += f"\n## {title}\n"
        for each in definitions:
            text += f"\n### {each.name}\n\n{each.description}\n\n"
            rows = [(code(member.name), member.kind, paragraph(member.description)) for member in each.members]
            text += table(head, rows) if rows else ""
    return text
