"""Command `python -m bench.grpc_load`: measures calls over gRPC of the gateway and of a bare `grpc.aio` server.

The load generator is `ghz`, a Go program. Each figure is a number of calls or events per second of the server's
processor time, so that it hardly depends on other programs. Every round measures both servers, in alternating order.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
import grpc
import msgspec
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import Message

from bench import chat_bodies
from bench.benchmark_rounds import (
    GATEWAY,
    KEY,
    PASS_THROUGH,
    allow_files,
    cores,
    fake_upstream,
    gateway,
    make_folder,
)
from bench.command_line import count, print_progress, run_to_end, seconds
from bench.grpc_passthrough_server import SERVICE, request_of
from bench.load_measurement import Bench, Cores, Plan, Target
from bench.processes import GRPC_ADDRESS, BenchError, output_of, started
from bench.report import setting, table
from umg_grpc.v1 import pb, rpc

ROUNDS = 5
WARM_UP_CALLS = 200
HEADINGS = ("load", "measure", "bare server", "gateway", "ratio", "spread")
QUICK = Plan(rounds=1, seconds=0.5, warmup=0, held=0)
"""Plan for a check that everything works; its figures are meaningless."""


class Load(NamedTuple):
    """Load of a row of the table: a model, whose name selects the response, and the calls that are open at once."""

    title: str
    model: str
    concurrency: int
    unit: str
    units: int
    """Number of units in a response."""

    @property
    def is_stream(self) -> bool:
        """Whether the response is a stream."""
        return self.model not in chat_bodies.WHOLE

    @property
    def method(self) -> str:
        """Name of the called method."""
        return "StreamGenerate" if self.is_stream else "Generate"

    @property
    def request(self) -> Message:
        """Request of each call."""
        request = request_of(self.model)
        return pb.StreamGenerateRequest(request=request) if self.is_stream else request


LOADS = (
    Load("small call", chat_bodies.SMALL, 64, "calls", 1),
    Load("stream at once", chat_bodies.BURST, 32, "events", chat_bodies.CHUNKS),
    Load("stream by chunks", chat_bodies.PACED, 32, "events", chat_bodies.CHUNKS),
)


class GhzReport(msgspec.Struct, rename="camel"):
    """Members of the report of `ghz` that are read."""

    count: int
    status_code_distribution: dict[str, int] = {}
    error_distribution: dict[str, int] = {}


class Result(NamedTuple):
    """Units per second of processor time of one load, target and round."""

    load: Load
    target: str
    rate: float


class Generator(NamedTuple):
    """Load generator `ghz` with the files that it reads."""

    program: Path
    folder: Path
    core: int | None

    async def put(self, target: Target, load: Load, *length: str) -> int:
        """Send the load to a target. Return the number of calls. `length`: arguments of `ghz` for the end of the load.
        Raise BenchError if a call fails.
        """
        command = [str(self.program), "--insecure", "--protoset", "schema", "--call", f"{SERVICE}.{load.method}"]
        command += ["--binary-file", load.model, "--metadata-file", "metadata", "--format", "json", "--cpus", "1"]
        command += ["--concurrency", str(load.concurrency), *length, f"127.0.0.1:{target.grpc_port}"]
        report = msgspec.json.decode(await output_of(command, self.folder, self.core), type=GhzReport)
        if report.status_code_distribution != {"OK": report.count}:
            found = [*report.status_code_distribution.items(), *report.error_distribution.items()]
            raise BenchError(f"{target.name}, {load.title}: {found}{target.process.error_output()}")
        return report.count

    def write_files(self) -> None:
        """Write the schema, the metadata and the requests of all loads."""
        names = FileDescriptorSet(file=_with_imports([pb.StreamGenerateRequest.DESCRIPTOR.file]))
        (self.folder / "schema").write_bytes(names.SerializeToString())
        (self.folder / "metadata").write_bytes(msgspec.json.encode({"authorization": f"Bearer {KEY}"}))
        for load in LOADS:
            (self.folder / load.model).write_bytes(load.request.SerializeToString())


async def measure(plan: Plan, where: Cores, program: Path, loads: Sequence[Load] = LOADS) -> list[Result]:
    """Return the results of all rounds. `program`: absolute path of `ghz`. Raises BenchError if a call fails."""
    allow_files()
    results = list[Result]()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="grpc-")))
        generator = Generator(program, folder, where.harness)
        generator.write_files()
        session = await stack.enter_async_context(aiohttp.ClientSession())
        upstream = await stack.enter_async_context(fake_upstream(where, folder))
        bench = Bench(plan, where, upstream, session, folder)
        for number in range(1, plan.rounds + 1):
            async with servers(upstream, where, folder / str(number)) as targets:
                for target in targets:
                    await check(target)
                for load in loads:
                    for target in targets if number % 2 else targets[::-1]:
                        print_progress(f"round {number} of {plan.rounds}: {load.title}, {target.name}")
                        results.append(await _measured(bench, generator, target, load))
    return results


@asynccontextmanager
async def servers(upstream: Target, where: Cores, folder: Path) -> AsyncGenerator[list[Target], None]:
    """Run the bare server and the gateway. `folder`: a new folder for their files."""
    make_folder(folder)
    address = f"http://127.0.0.1:{upstream.port}"
    bare = [sys.executable, "-m", "bench.grpc_passthrough_server", address, PASS_THROUGH]
    async with (
        started(PASS_THROUGH, bare, where.target, folder) as process,
        gateway(upstream, where, folder / GATEWAY) as ours,
    ):
        (port,) = await process.ports(GRPC_ADDRESS)
        yield [Target(PASS_THROUGH, process, 0, KEY, grpc_port=port), ours]


async def check(target: Target) -> None:
    """Make a call of each load. Raise BenchError if a response has another text than the provider's."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{target.grpc_port}") as channel:
        generation, metadata = rpc.GenerationServiceStub(channel), (("authorization", f"Bearer {KEY}"),)
        for load in LOADS:
            if load.is_stream:
                request = pb.StreamGenerateRequest(request=request_of(load.model))
                messages = [each async for each in generation.StreamGenerate(request, metadata=metadata)]
                text, body = _stream_text(messages), b"".join(each.source_frames for each in messages)
                expected = "".join(f" {i}" for i in range(chat_bodies.CHUNKS))
            else:
                response = await generation.Generate(request_of(load.model), metadata=metadata)
                parts = [part for each in response.candidates for part in each.message.parts]
                text, body = "".join(part.text.text for part in parts), response.source.body
                expected = chat_bodies.reply(load.model)
            if chat_bodies.fault(load.model, body) if target.name == PASS_THROUGH else text != expected:
                raise BenchError(f"{target.name}, {load.title}: another response than the provider's: {text or body!r}")


def _stream_text(messages: Iterable[pb.StreamGenerateResponse]) -> str:
    return "".join(event.text_delta for message in messages for event in message.events)


async def _measured(bench: Bench, generator: Generator, target: Target, load: Load) -> Result:
    await generator.put(target, load, "--total", str(WARM_UP_CALLS))
    served, spent = await bench.served(target), target.process.cpu_seconds()
    duration = ("--duration", f"{bench.plan.seconds:g}s", "--duration-stop", "wait")
    calls = await generator.put(target, load, *duration)
    spent = max(target.process.cpu_seconds() - spent, 0.01)
    if (found := await bench.served(target) - served) < calls:
        raise BenchError(f"{target.name}, {load.title}: {calls} responses, {found} calls at the upstream")
    return Result(load, target.name, calls * load.units / spent)


def _with_imports(files: Iterable[FileDescriptor]) -> Iterator[FileDescriptorProto]:
    """Yield the files and all files that they import, each once, after the files that it imports."""
    found = dict[str, FileDescriptorProto]()

    def add(file: FileDescriptor) -> None:
        if file.name not in found:
            for imported in file.dependencies:
                add(imported)
            found[file.name] = copy = FileDescriptorProto()
            file.CopyToProto(copy)

    for each in files:
        add(each)
    yield from found.values()


def as_table(plan: Plan, where: Cores, results: Sequence[Result]) -> str:
    """Return the medians of the rounds and their ratios as a Markdown table."""
    rows = list[tuple[str, ...]]()
    for load in dict.fromkeys(result.load for result in results):
        ours, bare = (
            [result.rate for result in results if result.load is load and result.target == name]
            for name in (GATEWAY, PASS_THROUGH)
        )
        ratios = [mine / theirs for mine, theirs in zip(ours, bare, strict=True)]
        figures = [f"{statistics.median(each):,.0f}" for each in (bare, ours)]
        spread = f"{min(ratios):.2f} - {max(ratios):.2f}"
        rows.append((load.title, f"{load.unit} per CPU second", *figures, f"{statistics.median(ratios):.2f}", spread))
    about = {**setting(where), "grpc": f"grpcio {grpc.__version__}"}
    length = f"Rounds: {plan.rounds}, each measurement {plan.seconds:g} s; the figures are medians."
    return f"{', '.join(about.values())}. {length}\n\n{table(HEADINGS, rows, left=2)}"


def main() -> int:
    """Run the command. Return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.grpc_load", description=__doc__)
    titles = [load.title for load in LOADS]
    parser.add_argument("loads", nargs="*", metavar="LOAD", help=f"of {', '.join(map(repr, titles))}; default: all")
    parser.add_argument("--ghz", default="ghz", help="path of ghz (default: the one on PATH)")
    parser.add_argument("--rounds", type=count, default=ROUNDS, help=f"how often all is measured (default {ROUNDS})")
    parser.add_argument("--seconds", type=seconds, default=3.0, help="length of one measurement (default 3)")
    parser.add_argument("--quick", action="store_true", help="some seconds: shows that it works, no more")
    arguments = parser.parse_args()
    if unknown := set(arguments.loads) - set(titles):
        parser.error(f"no such load: {', '.join(sorted(unknown))}")
    plan = QUICK if arguments.quick else Plan(arguments.rounds, arguments.seconds, warmup=0, held=0)
    loads = [load for load in LOADS if not arguments.loads or load.title in arguments.loads]

    found = shutil.which(arguments.ghz)
    program = None if found is None else Path(found).absolute()  # it runs in another folder

    async def measured() -> None:
        if program is None:
            raise BenchError(f"there is no {arguments.ghz}; `make grpc` installs it by Go, or give its path by --ghz")
        print(as_table(plan, where := cores(), await measure(plan, where, program, loads)))

    return run_to_end(measured)


if __name__ == "__main__":
    sys.exit(main())
