"""The schema for people outside of this repository: buf needs a copy of four paths, and nothing of our virtualenv.
`buf generate` runs with the input and the options of `buf.gen.yaml`, and with plugins that are installed here.
"""

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf.compiler import plugin_pb2

ROOT = Path(__file__).parents[3]
BUF = Path(sysconfig.get_path("scripts")) / "buf"
COPIED = ("proto", "third_party", "buf.yaml", "buf.gen.yaml")
SCHEMA = {str(path.relative_to(ROOT / "proto")) for path in (ROOT / "proto").rglob("*.proto")}
DETAILS = "google/rpc/error_details.proto"
MODULE = "umg.example/clients/go/gen"
TEMPLATE: dict[str, Any] = yaml.safe_load((ROOT / "buf.gen.yaml").read_text(encoding="utf-8"))
GO, GO_RPC, TYPESCRIPT = TEMPLATE["plugins"]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the four paths alone."""
    folder = tmp_path_factory.mktemp("copy")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name)
        else:
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def buf(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run buf in the directory, with an environment that has no virtualenv and no network by a proxy."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "HTTPS_PROXY": "http://127.0.0.1:9"}
    return subprocess.run([BUF, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False)


def generate(copy: Path, plugin: dict[str, Any], **changed: object) -> None:
    plugins = [{**plugin, **changed, "strategy": "all"}]
    done = buf(copy, "generate", "--template", json.dumps(TEMPLATE | {"plugins": plugins}))
    assert done.returncode == 0, done.stderr


def request_of(copy: Path, folder: Path, plugin: dict[str, Any]) -> plugin_pb2.CodeGeneratorRequest:
    generate(copy, plugin, local=[sys.executable, str(Path(__file__).with_name("request_dump.py"))], out=str(folder))
    return plugin_pb2.CodeGeneratorRequest.FromString(bytes.fromhex((folder / "request.hex").read_text()))


@pytest.fixture(scope="module")
def go_request(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> plugin_pb2.CodeGeneratorRequest:
    return request_of(copy, tmp_path_factory.mktemp("go"), GO)


@pytest.mark.parametrize("command", [("lint",), ("build",), ("format", "--diff", "--exit-code", "proto")])
def test_the_copy_passes(copy: Path, command: tuple[str, ...]) -> None:
    done = buf(copy, *command)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_image_of_a_release_detects_a_breaking_change(copy: Path, tmp_path: Path) -> None:
    shutil.copytree(copy, tmp_path, dirs_exist_ok=True)
    released = "proto/released.json"
    assert buf(tmp_path, "build", "proto", "--exclude-source-info", "-o", released).returncode == 0
    assert buf(tmp_path, "breaking", "proto", "--against", released).returncode == 0
    changed = tmp_path / "proto/umg/v1/model_service.proto"
    before = changed.read_text(encoding="utf-8")
    changed.write_text(before.replace("int32 page_size = ", "int64 page_size = "), encoding="utf-8")
    assert changed.read_text(encoding="utf-8") != before
    done = buf(tmp_path, "breaking", "proto", "--against", released)
    assert done.returncode == 100
    assert "ListModelsRequest" in done.stdout


def test_code_is_generated_for_every_file_of_ours_and_no_other(go_request: plugin_pb2.CodeGeneratorRequest) -> None:
    assert set(go_request.file_to_generate) == SCHEMA


def test_languages_whose_library_lacks_the_details_of_errors_get_them(copy: Path, tmp_path: Path) -> None:
    assert set(request_of(copy, tmp_path, TYPESCRIPT).file_to_generate) == {*SCHEMA, DETAILS}


def test_only_the_template_has_the_path_of_the_go_module(go_request: plugin_pb2.CodeGeneratorRequest) -> None:
    ours = [file.options for file in go_request.proto_file if file.name in SCHEMA]
    assert {options.go_package for options in ours} == {f"{MODULE}/umg/v1;umgv1"}
    assert {(options.java_package, options.csharp_namespace) for options in ours} == {("umg.v1", "Umg.V1")}
    assert not any("go_package" in (ROOT / "proto" / name).read_text(encoding="utf-8") for name in SCHEMA)


def test_clients_need_no_validation_rules(go_request: plugin_pb2.CodeGeneratorRequest) -> None:
    files = {file.name: file for file in go_request.proto_file}
    assert not [name for name in files if name.startswith("buf/")]
    assert not [name for name, file in files.items() if any(used.startswith("buf/") for used in file.dependency)]


def test_protoc_generates_code_from_it(copy: Path, tmp_path: Path) -> None:
    protoc = {"protoc_builtin": "python", "protoc_path": [sys.executable, "-m", "grpc_tools.protoc"]}
    generate(copy, protoc, out=str(tmp_path))
    made = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*_pb2.py")}
    assert made == {name.replace(".proto", "_pb2.py") for name in (*SCHEMA, DETAILS)}


def test_git_ignores_the_code_of_typescript_and_no_other() -> None:
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert [f"/{plugin['out']}/" in ignored for plugin in TEMPLATE["plugins"]] == [False, False, True]


def test_the_committed_code_of_go_is_that_of_the_schema() -> None:
    command = [sys.executable, str(ROOT / "scripts/go_client.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "is not checked" in done.stdout and done.returncode == 0:
        pytest.skip(done.stdout.strip())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
