"""Build hook that generates `umg_client.v1` from the gateway's `proto/` with betterproto2.

betterproto2 generates code for every imported file. Our files import the validation rules and the marks of URLs, which
a client does not need: so they are first compiled to a descriptor set with comments, from which these imports are
removed.
"""

import importlib.util
import re
import shutil
import tempfile
import textwrap
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

if TYPE_CHECKING:
    from google.protobuf import descriptor_pb2

PACKAGE = '''"""Every message, enum and stub of `umg.v1`."""

from umg_client.v1.umg.v1 import *
'''
# The validation rules, and the marks of fields with URLs.
UNNEEDED = frozenset({"buf/validate/validate.proto", "umg/v1/options.proto"})
# Messages in the details of a failed call.
STATUS_PROTOS = ["google/rpc/status.proto", "google/rpc/error_details.proto"]

BLOCKING = '''"""Stubs without `async` for every service of `umg.v1`, each on top of its asynchronous one."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from umg_client import v1

if TYPE_CHECKING:
    from betterproto2.grpclib.grpclib_client import MetadataLike

    from umg_client.sync import Loop
'''
SERVICE = '''

class {name}:
    """
{comment}
    """

    def __init__(self, stub: v1.{name}Stub, loop: "Loop") -> None:
        self._stub = stub
        self._loop = loop
'''
METHOD = '''
    def {name}(
        self, message: v1.{request}, *, timeout: float | None = None, metadata: "MetadataLike | None" = None
    ) -> {answer}:
        """
{comment}
        """
        return self._loop.{run}(self._stub.{name}(message, timeout=timeout, metadata=metadata))
'''


class GenerateHook(BuildHookInterface[Any]):
    """Hook that runs before every build of an sdist or wheel, editable or not."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the generated code to `src/umg_client/v1`. Raises RuntimeError for a .proto file that does not
        compile.
        """
        repository = Path(self.root).parents[1]
        if (repository / "proto" / "umg").is_dir():  # absent in an unpacked sdist, which contains the generated code
            generate(repository, Path(self.root) / "src" / "umg_client" / "v1")


def generate(repository: Path, package: Path) -> None:
    """Generate the package again as a whole, so that no code of a removed message is left."""
    made = package.with_name("v1.new")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        schema = Path(folder) / "schema.binpb"
        names = write_schema(repository, schema)
        compile_schema(schema, names, made)
        (made / "blocking.py").write_text(blocking_stubs(schema))
    (made / "__init__.py").write_text(PACKAGE)
    shutil.rmtree(package, ignore_errors=True)
    made.rename(package)


def write_schema(repository: Path, schema: Path) -> list[str]:
    """Write the descriptors of our files to `schema`, with comments and without rules and marks of URLs. Return the
    names of the files.
    """
    from google.protobuf import descriptor_pb2

    gateway = gateway_build(repository)
    gateway.compile_protos(repository, ["--include_source_info", f"--descriptor_set_out={schema}"], [])
    ours = descriptor_pb2.FileDescriptorSet.FromString(schema.read_bytes())
    for file in ours.file:
        for unneeded in UNNEEDED.intersection(file.dependency):
            file.dependency.remove(unneeded)
    [marks] = [file for file in ours.file if file.name in UNNEEDED]
    ours.file.remove(marks)
    schema.write_bytes(ours.SerializeToString())
    return [file.name for file in ours.file]


def compile_schema(schema: Path, names: list[str], made: Path) -> None:
    """Run betterproto2's plugin on the named files and the status protos. Raises RuntimeError if it fails."""
    from google.rpc import status_pb2
    from grpc_tools import protoc

    # as sources, since the plugin requires comments, which descriptors lack
    imports = [Path(protoc.__file__).parent / "_proto", Path(status_pb2.__file__).parents[2]]
    options = [f"--python_betterproto2_out={made}", "--python_betterproto2_opt=client_generation=async"]
    command = ["protoc", f"--descriptor_set_in={schema}", *(f"-I{path}" for path in imports), *options]
    if protoc.main([*command, *names, *STATUS_PROTOS]) != 0:
        raise RuntimeError("protoc failed; it printed why")


def blocking_stubs(schema: Path) -> str:
    """Return the code of a module with the service stubs without `async`."""
    from google.protobuf import descriptor_pb2

    code = [BLOCKING]
    for file in descriptor_pb2.FileDescriptorSet.FromString(schema.read_bytes()).file:
        comments = {tuple(place.path): place.leading_comments for place in file.source_code_info.location}
        for number, service in enumerate(file.service):
            path = (descriptor_pb2.FileDescriptorProto.SERVICE_FIELD_NUMBER, number)
            code.append(SERVICE.format(name=service.name, comment=docstring(comments[path], 4)))
            for index, method in enumerate(service.method):
                comment = comments[*path, descriptor_pb2.ServiceDescriptorProto.METHOD_FIELD_NUMBER, index]
                code.append(blocking_method(method, docstring(comment, 8)))
    return "".join(code)


def blocking_method(method: "descriptor_pb2.MethodDescriptorProto", comment: str) -> str:
    """Return the code of a method of a stub without `async`."""
    answer = f"v1.{method.output_type.rpartition('.')[2]}"
    return METHOD.format(
        name=re.sub(r"(?<=[a-z])(?=[A-Z])", "_", method.name).lower(),
        request=method.input_type.rpartition(".")[2],
        answer=f"Iterator[{answer}]" if method.server_streaming else answer,
        run="iterate" if method.server_streaming else "run",
        comment=comment,
    )


def docstring(comment: str, indent: int) -> str:
    """Return a comment of the schema as the lines of a docstring."""
    lines = textwrap.dedent(comment).strip().replace("\\", "\\\\")
    return textwrap.indent(lines, " " * indent)


def gateway_build(repository: Path) -> ModuleType:
    """Return the build hook module of the gateway, which compiles our schema."""
    spec = importlib.util.spec_from_file_location("gateway_build", repository / "hatch_build.py")
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{repository} has no hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
