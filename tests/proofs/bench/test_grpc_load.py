"""Measurement of calls over gRPC in its short form, and its table: no time is judged."""

import shutil
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from bench import chat_bodies, grpc_load
from bench.benchmark_rounds import GATEWAY, PASS_THROUGH, fake_upstream, make_folder
from bench.grpc_load import LOADS, Generator, Result, as_table
from bench.load_measurement import Cores, Plan
from bench.processes import BenchError

ROOT = Path(__file__).parents[3]
INSTALLED = "build/tools/ghz"
GHZ = INSTALLED if (ROOT / INSTALLED).exists() else shutil.which("ghz")
NO_CORES = Cores(None, None)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the benchmark reads /proc")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.grpc_load", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)


@pytest.mark.skipif(GHZ is None, reason="ghz is not installed: `make grpc` installs it by Go")
def test_every_load_is_measured_at_both_servers() -> None:
    done = run("--quick", "--ghz", str(GHZ))
    assert done.returncode == 0, done.stderr
    figures = [[cell.strip() for cell in row.split("|")] for row in done.stdout.splitlines() if row.startswith("|")]
    assert [row[1] for row in figures[2:]] == [load.title for load in LOADS]
    assert all(float(row[3].replace(",", "")) > 0 and float(row[4].replace(",", "")) > 0 for row in figures[2:])


def test_without_its_load_generator_the_command_states_how_to_install_it() -> None:
    done = run("--quick", "--ghz", "/nowhere/ghz")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "bench: there is no /nowhere/ghz; `make grpc` installs it by Go, or give its path by --ghz\n"


async def test_both_servers_respond_with_the_text_of_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream = await stack.enter_async_context(fake_upstream(NO_CORES, folder))
        targets = await stack.enter_async_context(grpc_load.servers(upstream, NO_CORES, folder / "round"))
        assert [target.name for target in targets] == [PASS_THROUGH, GATEWAY]
        for target in targets:
            await grpc_load.check(target)
        monkeypatch.setattr(chat_bodies, "CHUNKS", chat_bodies.CHUNKS + 1)
        for target in targets:
            with pytest.raises(BenchError, match="another response than the provider's"):
                await grpc_load.check(target)


def test_the_files_for_the_load_generator_describe_the_method_and_have_a_request_for_each_load(tmp_path: Path) -> None:
    make_folder(tmp_path / "files")
    Generator(Path("ghz"), tmp_path / "files", None).write_files()
    files = FileDescriptorSet.FromString((tmp_path / "files" / "schema").read_bytes()).file
    seen = set[str]()
    for file in files:
        assert seen.issuperset(file.dependency), file.name
        seen.add(file.name)
    assert {"umg/v1/generation_service.proto", "umg/v1/generation.proto"} <= seen
    for load in LOADS:
        written = (tmp_path / "files" / load.model).read_bytes()
        assert load.model in str(type(load.request).FromString(written))


def test_the_table_has_medians_and_the_ratios_of_the_rounds() -> None:
    load = LOADS[0]
    rates = {PASS_THROUGH: (4000.0, 2000.0, 3000.0), GATEWAY: (2000.0, 1500.0, 1800.0)}
    results = [Result(load, name, rate) for name, each in rates.items() for rate in each]
    shown = as_table(Plan(3, 1.0, 0, 0), NO_CORES, results)
    assert f"grpcio {grpc.__version__}" in shown
    (row,) = [line for line in shown.splitlines() if line.startswith("| small call")]
    assert [cell.strip() for cell in row.split("|")[2:-1]] == [
        *("calls per CPU second", "3,000", "1,800", "0.60", "0.50 - 0.75"),
    ]
