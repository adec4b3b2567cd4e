"""Command `python -m bench.call_counts`: counts the functions and bytecodes of the gateway's own code for single calls,
the memory blocks that Python allocates for them, libraries included, and the longest time of one on the event loop.

Unlike times the counts depend neither on the machine nor on its load. `--check` compares them with those in
`call_counts.json` for this version of Python, and fails where a call takes more than `TOLERANCE` more; `--write` writes
them there. Rows are written to the database for many calls at once, so the modules of the database are not counted.
"""

import argparse
import asyncio
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import NamedTuple

import grpc
import msgspec

from bench import chat_bodies, codec_samples, embedding_bodies
from bench.benchmark_rounds import KEY, fake_upstream, write_config
from bench.command_line import run_to_end
from bench.load_measurement import Cores
from bench.processes import ADDRESS, GRPC_ADDRESS, BenchError, started
from umg_grpc.v1 import pb, rpc

ROOT = Path(__file__).parents[1]
COUNTED = re.compile(rf"{re.escape(str(ROOT))}/(?:umg_grpc/(?!store/)|http_facade/|gen/)")
"""Files whose code counts."""
FILE = Path(__file__).with_suffix(".json")
ALLOCATION_COUNTER = FILE.with_name("allocation_counter.c")
COMPILER = ("cc", "-O2", "-shared", "-fPIC")
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
TOLERANCE = 0.03
WARM_UP = 3
SETTLING_SECONDS = 0.15
"""Time after the last response in which its log line and records are written."""
ANSWER_SECONDS = 60.0


class Counts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Functions (calls and resumptions of coroutines in Python), bytecodes and allocated memory blocks of one call."""

    functions: int
    bytecodes: int
    allocations: int
    longest_turn_micros: int = 0
    """Longest processor time for which one of the calls held the event loop; 0 if written down."""


KINDS = ("functions", "bytecodes", "allocations")
JUDGED_KINDS = ("functions", "bytecodes")
"""Counts that a change must not increase. Allocations also depend on work in the background."""


class Call(NamedTuple):
    """Call whose work is counted, with the number of repetitions for functions and bytecodes."""

    name: str
    path: str
    """Path of an HTTP request, or the method of the generation service."""
    body: bytes
    functions: int = 100
    bytecodes: int = 30
    rounds: int = 1
    """Rounds of which the least counts hold: the system decides in how many parts a large body arrives."""


def calls() -> Iterator[Call]:
    """Yield the calls over HTTP, then those over gRPC."""
    chat, embeddings, messages = chat_bodies.PATH, embedding_bodies.PATH, "/v1/messages"
    agent = msgspec.json.decode(codec_samples.samples()["chat"].agent)
    turn = {"role": "user", "content": "Say in one sentence what a gateway is good for."}
    message = {"model": chat_bodies.BURST, "max_tokens": 200, "stream": True, "messages": [turn]}
    yield Call("small call", chat, chat_bodies.request_body(chat_bodies.SMALL))
    yield Call("response of 20 KB", chat, chat_bodies.request_body(chat_bodies.LARGE))
    yield Call("embedding", embeddings, embedding_bodies.request_body(embedding_bodies.FLOAT))
    yield Call("stream at once", chat, chat_bodies.request_body(chat_bodies.BURST))
    yield Call("stream by chunks", chat, chat_bodies.request_body(chat_bodies.PACED), 3, 2)
    yield Call("stream of another format", messages, msgspec.json.encode(message))
    yield Call("agent's request of 1 MB", chat, msgspec.json.encode({**agent, "model": chat_bodies.SMALL}), 10, 5, 5)
    small = pb.GenerateRequest(model=chat_bodies.SMALL)
    small.messages.add(role=pb.ROLE_USER).parts.add().text.text = turn["content"]
    yield Call("small call over gRPC", "Generate", small.SerializeToString())
    small.model = chat_bodies.BURST
    yield Call("stream over gRPC", "StreamGenerate", small.SerializeToString())


async def measure(counted: Iterable[Call]) -> dict[str, Counts]:
    """Return the counts of calls by name. Raises BenchError for a response other than a success."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="counts-")))
        upstream = await stack.enter_async_context(fake_upstream(Cores(None, None), folder))
        config = write_config(upstream, folder / "gateway", "counted", local=False)
        library = str(await asyncio.to_thread(compiled_counter, folder))
        address = str(folder / "counts")
        receiver = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        receiver.bind(address)
        receiver.settimeout(ANSWER_SECONDS)
        command = [sys.executable, "-m", "bench.counted_gateway", address, library, "serve", "--config", str(config)]
        command += ["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--data", str(folder / "gateway" / "data")]
        gateway = await stack.enter_async_context(started("gateway", command, None, folder, {"UMG_API_KEY": KEY}))
        ports = await gateway.ports(ADDRESS, GRPC_ADDRESS)
        client = stack.enter_context(closing(Client(*ports)))
        counter = Counter(gateway.session, receiver)
        return {call.name: await asyncio.to_thread(counter.counts, call, client.calling(call)) for call in counted}


def compiled_counter(folder: Path) -> Path:
    """Return the shared library of `allocation_counter.c`, compiled in a folder."""
    library = folder / "allocation_counter.so"
    subprocess.run([*COMPILER, "-o", library, ALLOCATION_COUNTER], check=True)
    return library


class Client:
    """Client of the gateway that makes one call after the other, on one connection for each face."""

    def __init__(self, http_port: int, grpc_port: int) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", http_port, timeout=ANSWER_SECONDS)
        self._channel = grpc.insecure_channel(f"127.0.0.1:{grpc_port}")
        self._generation = rpc.GenerationServiceStub(self._channel)

    def close(self) -> None:
        """Close both connections."""
        self._http.close()
        self._channel.close()

    def calling(self, call: Call) -> Callable[[], None]:
        """Return a function that makes a call and reads its response to the end."""
        return (lambda: self._post(call)) if call.path.startswith("/") else (lambda: self._invoke(call))

    def _post(self, call: Call) -> None:
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        self._http.request("POST", call.path, call.body, headers)
        response = self._http.getresponse()
        body = response.read()
        if response.status != 200 or not body:
            raise BenchError(f"{call.name}: status {response.status}: {body[:200]!r}")

    def _invoke(self, call: Call) -> None:
        metadata = (("authorization", f"Bearer {KEY}"),)
        request = pb.GenerateRequest.FromString(call.body)
        if call.path == "Generate":
            self._generation.Generate(request, metadata=metadata)
        else:
            stream = pb.StreamGenerateRequest(request=request)
            if not list(self._generation.StreamGenerate(stream, metadata=metadata)):
                raise BenchError(f"{call.name}: a stream without a message")


class Counter:
    """Counter of the gateway's work, by the signals of `counted_gateway`."""

    def __init__(self, process: int, receiver: socket.socket) -> None:
        self._process = process
        self._receiver = receiver

    def counts(self, call: Call, make: Callable[[], None]) -> Counts:
        """Make a call several times, and return the counts of one call."""
        for _ in range(WARM_UP):
            make()
        time.sleep(SETTLING_SECONDS)
        rounds = range(call.rounds)
        functions = min(self._count(signal.SIGUSR1, make, call.functions) for _ in rounds) / call.functions
        bytecodes = min(self._count(signal.SIGUSR2, make, call.bytecodes) for _ in rounds) / call.bytecodes
        allocations = self._count(signal.SIGPROF, make, call.functions) / call.functions
        longest = self._count(signal.SIGALRM, make, call.functions)
        return Counts(round(functions), round(bytecodes), round(allocations), longest)

    def _count(self, number: signal.Signals, make: Callable[[], None], times: int) -> int:
        os.kill(self._process, number)
        self._receiver.recv(1)
        for _ in range(times):
            make()
        time.sleep(SETTLING_SECONDS)
        os.kill(self._process, number)
        counted = msgspec.json.decode(self._receiver.recv(1 << 20), type=dict[str, int])
        return sum(count for file, count in counted.items() if not file or COUNTED.match(file))


def table(found: Mapping[str, Counts], known: Mapping[str, Counts]) -> str:
    """Return the counts as a Markdown table, beside the known counts."""
    rows = [
        f"Python {VERSION}",
        "",
        f"| call | {' | '.join(f'{kind} | written down' for kind in KINDS)} | longest turn, us |",
        f"|---|{'--:|' * (2 * len(KINDS) + 1)}",
    ]
    for name, counts in found.items():
        then = known.get(name)
        pairs = ((getattr(counts, kind), None if then is None else getattr(then, kind)) for kind in KINDS)
        cells = (f"{now:,} | {'-' if noted is None else f'{noted:,}'}" for now, noted in pairs)
        rows.append(f"| {name} | {' | '.join(cells)} | {counts.longest_turn_micros:,} |")
    return "\n".join(rows)


def exceeded(found: Mapping[str, Counts], known: Mapping[str, Counts]) -> Iterator[str]:
    """Yield a line for each call that takes more than is written down and tolerated."""
    for name, then in known.items():
        now = found[name]
        for kind in JUDGED_KINDS:
            more, less = getattr(now, kind), getattr(then, kind)
            if more > less * (1 + TOLERANCE):
                yield f"{name}: {more:,} {kind}, {less:,} are written down in {FILE.name}"


async def run(arguments: argparse.Namespace) -> None:
    """Count, print the table, then write or check. Raises BenchError if the check fails."""
    written = msgspec.json.decode(FILE.read_bytes(), type=dict[str, dict[str, Counts]])
    if arguments.check and VERSION not in written:
        print(f"{FILE.name} has no counts for Python {VERSION}: nothing to compare")
        return
    found = await measure(calls())
    print(table(found, written.get(VERSION, {})))
    if arguments.write:
        kept = {name: msgspec.structs.replace(counts, longest_turn_micros=0) for name, counts in found.items()}
        text = msgspec.json.encode({**written, VERSION: kept}, order="sorted")
        FILE.write_bytes(msgspec.json.format(text, indent=1) + b"\n")
    elif arguments.check and (lines := list(exceeded(found, written[VERSION]))):
        hint = "make the calls cheaper, or write the counts down with the reason: python -m bench.call_counts --write"
        raise BenchError("\n".join([*lines, hint]))


def main() -> int:
    """Run the command. Return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.call_counts", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a call takes more than is written down")
    parser.add_argument("--write", action="store_true", help="write the counts down for this version of Python")
    arguments = parser.parse_args()
    return run_to_end(lambda: run(arguments))


if __name__ == "__main__":
    sys.exit(main())
