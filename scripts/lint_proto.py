"""Check the names of the schema: no two fields of a message may lead to the same member in the generated Java, Go or
C#.

buf checks the rest (`make check`). The descriptors are those of `buf build`, so that no other toolchain is needed.
"""

import re
import subprocess
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorSet

ROOT = Path(__file__).resolve().parent.parent
BUF = Path(sysconfig.get_path("scripts")) / "buf"

# Methods that protoc makes for a field in Java, `{}` being its name in camel case.
SINGULAR = ("get{}", "set{}", "has{}", "clear{}")
REPEATED = ("get{}", "set{}", "add{}", "addAll{}", "get{}List", "get{}Count", "clear{}")
MAP = (
    "get{}",
    "get{}Map",
    "get{}Count",
    "get{}OrDefault",
    "get{}OrThrow",
    "contains{}",
    "put{}",
    "putAll{}",
    "remove{}",
)
ONEOF = ("get{}Case", "clear{}")
# Further ones by the type of the field.
OF_TYPE = {
    FieldDescriptorProto.TYPE_STRING: ("get{}Bytes", "set{}Bytes", "add{}Bytes"),
    FieldDescriptorProto.TYPE_ENUM: ("get{}Value", "set{}Value", "add{}Value", "get{}ValueList", "addAll{}Value"),
    FieldDescriptorProto.TYPE_MESSAGE: (
        "get{}Builder", "get{}OrBuilder", "get{}BuilderList", "get{}OrBuilderList", "add{}Builder", "merge{}",
        "remove{}",
    ),
}  # fmt: skip
# Members that every message has, or that its language reserves.
RESERVED = {
    "Java": {
        "getAllFields", "getClass", "getDefaultInstance", "getDefaultInstanceForType", "getDescriptor",
        "getDescriptorForType", "getInitializationErrorString", "getParserForType", "getSerializedSize",
        "getUnknownFields", "setUnknownFields", "mergeUnknownFields", "hasField", "clearField", "getField", "setField",
    },
    "Go": {"Reset", "String", "ProtoMessage", "ProtoReflect", "Descriptor"},
    "C#": {
        "CalculateSize", "Clone", "Descriptor", "Equals", "GetHashCode", "GetType", "MergeFrom", "Parser", "ToString",
        "Types", "WriteTo",
    },
}  # fmt: skip


def camel(name: str) -> str:
    """Return a name in camel case with a capital first, as Java and C# have it."""
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"_|(?<=\d)(?=[a-z])", name))


def go_camel(name: str) -> str:
    """Return a name as Go has it: an underscore before a digit stays."""
    return re.sub(r"(?:^|_|(?<=\d))([a-z])", lambda found: found[1].upper(), name)


def java_members(message: DescriptorProto) -> Iterator[tuple[str, str]]:
    """Yield (field or oneof, method) of the Java classes for a message and its builder."""
    maps = {nested.name for nested in message.nested_type if nested.options.map_entry}
    for field in message.field:
        if field.type_name.rpartition(".")[2] in maps:
            methods: tuple[str, ...] = MAP
        elif field.label == FieldDescriptorProto.LABEL_REPEATED:
            methods = (*REPEATED, *OF_TYPE.get(field.type, ()))
        else:
            methods = (*SINGULAR, *OF_TYPE.get(field.type, ()))
        yield from ((field.name, method.format(camel(field.name))) for method in methods)
    for oneof in _oneofs(message):
        yield from ((oneof, method.format(camel(oneof))) for method in ONEOF)


def go_members(message: DescriptorProto) -> Iterator[tuple[str, str]]:
    """Yield (field or oneof, member of the struct or method) of the Go code for a message."""
    fields_of_oneofs = {field.name for field in message.field if field.HasField("oneof_index")}
    for name in (*(field.name for field in message.field), *_oneofs(message)):
        yield name, f"Get{go_camel(name)}"
        if name not in fields_of_oneofs:  # those are in a struct of their own
            yield name, go_camel(name)


def csharp_members(message: DescriptorProto) -> Iterator[tuple[str, str]]:
    """Yield (field or oneof, property or method) of the C# class for a message."""
    for field in message.field:
        yield from ((field.name, form.format(camel(field.name))) for form in ("{}", "Has{}", "Clear{}"))
    for oneof in _oneofs(message):
        yield from ((oneof, form.format(camel(oneof))) for form in ("{}Case", "{}OneofCase", "Clear{}"))


MEMBERS = {"Java": java_members, "Go": go_members, "C#": csharp_members}


def findings(message: DescriptorProto, path: str) -> Iterator[str]:
    """Yield a line for each clash in a message and those inside it."""
    for language, members in MEMBERS.items():
        owners = defaultdict[str, list[str]](list)
        for owner, member in members(message):
            if owner not in owners[member]:
                owners[member].append(owner)
        # a property of C# may not have the name of its class
        reserved = RESERVED[language] | ({message.name} if language == "C#" else set())
        for member, names in owners.items():
            if len(names) > 1:
                yield f"{path}: {' and '.join(f'`{name}`' for name in names)} make one {member} in {language}"
            elif member in reserved:
                yield f"{path}: `{names[0]}` makes {member}, which {language} reserves"
    for field in message.field:
        if re.search(r"_\d", field.name):
            yield f"{path}: a word of `{field.name}` begins with a digit, which makes {go_camel(field.name)} in Go"
    for nested in message.nested_type:
        if not nested.options.map_entry:
            yield from findings(nested, f"{path}.{nested.name}")


def findings_of_schema(schema: FileDescriptorSet) -> list[str]:
    """Return a line for each clash in the .proto files of the gateway."""
    ours = [file for file in schema.file if file.package == "umg.v1"]
    return [line for file in ours for message in file.message_type for line in findings(message, message.name)]


def _oneofs(message: DescriptorProto) -> list[str]:
    synthetic = {field.oneof_index for field in message.field if field.proto3_optional}
    return [oneof.name for index, oneof in enumerate(message.oneof_decl) if index not in synthetic]


def main() -> int:
    """Check the schema. Return the exit status, 0 if it passes."""
    command = [BUF, "build", "--exclude-source-info", "-o", "-"]
    image = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    found = findings_of_schema(FileDescriptorSet.FromString(image.stdout))
    print("\n".join(found) or "names of the schema: no clashes")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
