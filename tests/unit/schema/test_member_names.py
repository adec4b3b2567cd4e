"""`scripts/lint_proto.py`: fields of one message whose members clash in a generated language."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import pytest
from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet

SCRIPT = Path(__file__).parents[3] / "scripts/lint_proto.py"
spec = importlib.util.spec_from_file_location("lint_proto", SCRIPT)
assert spec is not None
assert spec.loader is not None
lint_proto = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lint_proto)


@dataclass(frozen=True)
class Clash:
    id: str
    message: str  # the fields of a message `Made`, as text
    found: str  # a part of the only line; empty: no clash


def field(name: str, kind: str = "INT32", label: str = "OPTIONAL", more: str = "") -> str:
    return f'field {{ name: "{name}" type: TYPE_{kind} label: LABEL_{label} {more} }}'


# fmt: off
CLASHES = [
    Clash("none", field("token", "BYTES") + field("raw_bytes", "BYTES"), ""),
    Clash("a string and its bytes", field("token", "STRING") + field("token_bytes", "BYTES"), "`token` and `token_bytes` make one getTokenBytes in Java"),
    Clash("a list and its count", field("part", "INT32", "REPEATED") + field("part_count"), "`part` and `part_count` make one getPartCount in Java"),
    Clash("a number and a count", field("part") + field("part_count"), ""),
    Clash("an enum and its number", field("kind", "ENUM") + field("kind_value"), "`kind` and `kind_value` make one getKindValue in Java"),
    Clash("a field and its getter", field("user") + field("get_user"), "`user` and `get_user` make one GetUser in Go"),
    Clash("a field and its presence", field("user") + field("has_user"), "`user` and `has_user` make one HasUser in C#"),
    Clash("a oneof and its case", field("user", more="oneof_index: 0") + 'oneof_decl { name: "kind" }' + field("kind_case"), "`kind_case` and `kind` make one getKindCase in Java"),
    Clash("a word that begins with a digit", field("write_1h_tokens"), "makes Write_1HTokens in Go"),
    Clash("a property with the name of its class", field("made"), "`made` makes Made, which C# reserves"),
    Clash("a member of every message", field("reset"), "`reset` makes Reset, which Go reserves"),
    Clash("inside another message", 'nested_type { name: "Inner" ' + field("reset") + "}", "Made.Inner: `reset` makes Reset"),
]
# fmt: on


@pytest.mark.parametrize("case", CLASHES, ids=lambda case: case.id)
def test_fields_that_make_one_member_are_found(case: Clash) -> None:
    message = text_format.Parse(f'name: "Made" {case.message}', DescriptorProto())
    schema = FileDescriptorSet(file=[FileDescriptorProto(package="umg.v1", message_type=[message])])
    found = lint_proto.findings_of_schema(schema)
    assert all(case.found in line for line in found[:1])
    assert bool(found) == bool(case.found)
