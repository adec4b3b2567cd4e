"""Build hook: makes the protobuf and gRPC modules in `gen/` from `proto/`.

protovalidate ships the rules' schema (`buf/validate/validate.proto`) only as descriptor bytes inside one of its own
modules. protoc is given those bytes as a descriptor set, beside google's, and so makes `umg/v1` and the private
`buf/validate/validate_pb2.py` that our modules import.
"""

import ast
import importlib.util
import os
import shutil
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

RULES_PROTO = "buf/validate/validate.proto"
IMAGE = "schema.binpb"
"""The compiled schema with its comments and imports, which `buf.gen.yaml` reads."""


class GenerateHook(BuildHookInterface[Any]):
    """Runs before every wheel, editable or not."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write `gen/`. Fail the build when a .proto does not compile."""
        if self.target_name == "wheel":
            generate(Path(self.root))


def generate(root: Path) -> None:
    """Replace `gen/` below `root` as a whole, so that a removed .proto leaves no module behind."""
    made = root / "gen.new"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    plugins = ["python", "grpc_python", "mypy", "mypy_grpc"]
    image = ["--include_imports", "--include_source_info", f"--descriptor_set_out={made / IMAGE}"]
    compile_protos(root, [*(f"--{plugin}_out={made}" for plugin in plugins), *image], [RULES_PROTO])
    for package in ("umg", "umg/v1", "buf", "buf/validate"):
        (made / package / "__init__.py").write_text("")
        (made / package / "py.typed").write_text("")
    shutil.rmtree(root / "gen", ignore_errors=True)
    made.rename(root / "gen")


def compile_protos(root: Path, arguments: list[str], others: list[str]) -> None:
    """Run protoc over all our files and `others`. Raise RuntimeError when it fails (it prints why)."""
    from grpc_tools import protoc

    # protoc finds its plugins on PATH; an isolated build has them there already, a virtualenv that is not activated has
    # not
    os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    files = sorted(str(path.relative_to(root / "proto")) for path in (root / "proto").rglob("*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        imports = Path(folder) / "imports.binpb"
        imports.write_bytes(imported_descriptors())
        command = ["protoc", f"-I{root / 'proto'}", f"--descriptor_set_in={imports}", *arguments, *files, *others]
        if protoc.main(command) != 0:
            raise RuntimeError("protoc failed; it printed why")


def imported_descriptors() -> bytes:
    """Return the serialised FileDescriptorSet of our files' imports: google's well-known types and the rules."""
    from google.protobuf import descriptor_pb2, duration_pb2, field_mask_pb2, timestamp_pb2

    known = descriptor_pb2.FileDescriptorSet()
    for module in (descriptor_pb2, duration_pb2, field_mask_pb2, timestamp_pb2):
        module.DESCRIPTOR.CopyToProto(known.file.add())
    known.file.add().ParseFromString(rules_descriptor())
    return known.SerializeToString()


def rules_descriptor() -> bytes:
    """The descriptor bytes inside the installed protovalidate. Read from its source, since importing it would register
    them.
    """
    spec = importlib.util.find_spec("protovalidate")
    if spec is None or spec.origin is None:
        raise RuntimeError("protovalidate is not installed in the build environment")
    module = Path(spec.origin).parent / "_gen" / "buf" / "validate" / "validate_pb.py"
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "file_desc":
            return bytes(ast.literal_eval(node.args[0]))
    raise RuntimeError(f"{module} holds no file_desc(...): this protovalidate is laid out in another way")
