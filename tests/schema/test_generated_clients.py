"""`buf.gen.yaml`: `buf generate` runs with its input and its options, and with plugins that are installed here."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf.compiler import plugin_pb2

ROOT = Path(__file__).parents[2]
BUF = Path(sysconfig.get_path("scripts")) / "buf"
SCHEMA = {str(path.relative_to(ROOT / "proto")) for path in (ROOT / "proto").rglob("*.proto")}
MODULE = "umg.example/clients/go/gen"


def generate(folder: Path, *plugins: dict[str, object]) -> None:
    """Run `buf generate` with other plugins."""
    template: dict[str, Any] = yaml.safe_load((ROOT / "buf.gen.yaml").read_text(encoding="utf-8"))
    template["plugins"] = [{**plugin, "out": str(folder), "strategy": "all"} for plugin in plugins]
    subprocess.run([BUF, "generate", "--template", json.dumps(template)], cwd=ROOT, check=True)


@pytest.fixture(scope="module")
def request_of_plugins(tmp_path_factory: pytest.TempPathFactory) -> plugin_pb2.CodeGeneratorRequest:
    """Return the request that a plugin of the file receives."""
    folder = tmp_path_factory.mktemp("request")
    generate(folder, {"local": [sys.executable, str(Path(__file__).with_name("request_dump.py"))]})
    return plugin_pb2.CodeGeneratorRequest.FromString(bytes.fromhex((folder / "request.hex").read_text()))


def test_code_is_generated_for_every_file_of_ours_and_no_other(
    request_of_plugins: plugin_pb2.CodeGeneratorRequest,
) -> None:
    assert set(request_of_plugins.file_to_generate) == SCHEMA


def test_only_the_template_has_the_path_of_the_go_module(request_of_plugins: plugin_pb2.CodeGeneratorRequest) -> None:
    ours = [file.options for file in request_of_plugins.proto_file if file.name in SCHEMA]
    assert {options.go_package for options in ours} == {f"{MODULE}/umg/v1;umgv1"}
    assert {(options.java_package, options.csharp_namespace) for options in ours} == {("umg.v1", "Umg.V1")}
    assert not any("go_package" in (ROOT / "proto" / name).read_text(encoding="utf-8") for name in SCHEMA)


def test_clients_need_no_validation_rules(request_of_plugins: plugin_pb2.CodeGeneratorRequest) -> None:
    files = {file.name: file for file in request_of_plugins.proto_file}
    assert not [name for name in files if name.startswith("buf/")]
    assert not [name for name, file in files.items() if any(used.startswith("buf/") for used in file.dependency)]


def test_protoc_generates_code_from_it(tmp_path: Path) -> None:
    generate(tmp_path, {"protoc_builtin": "python", "protoc_path": [sys.executable, "-m", "grpc_tools.protoc"]})
    made = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*_pb2.py")}
    assert made == {name.replace(".proto", "_pb2.py") for name in SCHEMA}


def test_each_plugin_writes_into_a_folder_that_git_ignores() -> None:
    template = yaml.safe_load((ROOT / "buf.gen.yaml").read_text(encoding="utf-8"))
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {f"/{plugin['out']}/" for plugin in template["plugins"]} <= set(ignored)
