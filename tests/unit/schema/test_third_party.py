"""The copies in `third_party/` are those of the installed packages."""

import ast
import importlib.util
import re
from importlib.metadata import version
from pathlib import Path

import google.rpc
import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

ROOT = Path(__file__).parents[3]
COPIES = ROOT / "third_party"
RULES = "buf/validate/validate.proto"


def installed_rules() -> FileDescriptorProto:
    """Return the descriptor in the installed protovalidate, read from its source: importing it would register it."""
    spec = importlib.util.find_spec("protovalidate")
    assert spec is not None
    assert spec.origin is not None
    module = Path(spec.origin).parent / "_gen/buf/validate/validate_pb.py"
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "file_desc":
            return FileDescriptorProto.FromString(ast.literal_eval(node.args[0]))
    raise AssertionError(f"{module} has no descriptor")


def test_the_rules_are_those_of_the_installed_protovalidate(tmp_path: Path) -> None:
    image = tmp_path / "image.binpb"
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    arguments = [f"-I{COPIES}", f"-I{well_known}", f"--descriptor_set_out={image}", RULES]
    assert protoc.main(["protoc", *arguments]) == 0
    [ours] = FileDescriptorSet.FromString(image.read_bytes()).file
    installed = installed_rules()
    for rules in (ours, installed):
        rules.ClearField("options")  # names of packages, which buf's managed mode set in one of them
    assert ours == installed


def test_the_details_of_errors_are_those_of_the_installed_package() -> None:
    name = "google/rpc/error_details.proto"
    [folder] = google.rpc.__path__
    assert (COPIES / name).read_bytes() == (Path(folder).parents[1] / name).read_bytes()
    readme = (COPIES / "README.md").read_text(encoding="utf-8")
    assert f"`googleapis-common-protos` | {version('googleapis-common-protos')} |" in readme


def test_the_table_names_every_file() -> None:
    named = set(re.findall(r"^\| `(\S+\.proto)` \|", (COPIES / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert named == {str(path.relative_to(COPIES)) for path in COPIES.rglob("*.proto")}
