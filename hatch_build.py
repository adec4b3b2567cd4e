"""Build hook: makes the protobuf and gRPC modules in `gen/` from `proto/`, those of the validation rules that our files
import from `third_party/`, and `every_pb2` and `every_pb2_grpc` with the names of all of ours.
"""

import json
import os
import shutil
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

RULES_PROTO = "buf/validate/validate.proto"
COMMENTS = "umg/v1/comments.json"
"""File with the comments of the schema by the full names of their elements, which generated modules do not have."""


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
    described = made / "described.binpb"
    outputs = [*(f"--{plugin}_out={made}" for plugin in plugins), f"--descriptor_set_out={described}"]
    compile_protos(root, [*outputs, "--include_source_info"], [RULES_PROTO])
    for suffix in ("pb2", "pb2_grpc"):
        modules = sorted(f"umg.v1.{path.stem}_{suffix}" for path in (root / "proto" / "umg" / "v1").glob("*.proto"))
        everything = "".join(f"from {module} import *\n" for module in modules)
        (made / "umg" / "v1" / f"every_{suffix}.py").write_text(everything)
    for package in ("umg", "umg/v1", "buf", "buf/validate"):
        (made / package / "__init__.py").write_text("")
        (made / package / "py.typed").write_text("")
    (made / COMMENTS).write_text(json.dumps(comments(described.read_bytes()), indent=0, ensure_ascii=False))
    described.unlink()
    shutil.rmtree(root / "gen", ignore_errors=True)
    made.rename(root / "gen")


def compile_protos(root: Path, arguments: list[str], others: list[str]) -> None:
    """Run protoc over all our files and `others`. Raise RuntimeError when it fails (it prints why)."""
    import grpc_tools
    from grpc_tools import protoc

    # protoc finds its plugins on PATH; an isolated build has them there already, a virtualenv that is not activated has
    # not
    os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    files = sorted(str(path.relative_to(root / "proto")) for path in (root / "proto").rglob("*.proto"))
    well_known = Path(grpc_tools.__file__).parent / "_proto"  # google/protobuf
    imports = [f"-I{folder}" for folder in (root / "proto", root / "third_party", well_known)]
    if protoc.main(["protoc", *imports, *arguments, *files, *others]) != 0:
        raise RuntimeError("protoc failed; it printed why")


def comments(descriptors: bytes) -> dict[str, str]:
    """Return the comments of the elements of a descriptor set with source info, by the full names of our elements."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    return {
        f"{file.package}.{name}": "\n".join(
            line.removeprefix(" ") for line in location.leading_comments.strip().splitlines()
        )
        for file in FileDescriptorSet.FromString(descriptors).file
        for location in file.source_code_info.location
        if file.name.startswith("umg/") and location.leading_comments and (name := element_name(file, location.path))
    }


def element_name(file: object, path: Sequence[int]) -> str:
    """Return the name of the element of a file at the path of a comment; "" for an option or a statement."""
    element: Any = file
    names = []
    for field, index in zip(path[::2], path[1::2], strict=False):
        members = getattr(element, element.DESCRIPTOR.fields_by_number[field].name)
        if not hasattr(members, "append") or not hasattr(members[index], "name"):
            return ""
        element = members[index]
        names.append(element.name)
    return ".".join(names)
