"""Command `python -m bench.compiled_modules`: measures the gain of compiled code, function by function.

It compiles copies of the modules in `MODULES`, which have plain functions of the call path, by Cython as they are, and
measures functions of these modules as the interpreter executes them, and compiled. The gateway is not compiled: whole
modules with coroutines become slower, and the gain of a call is a fraction of that of its functions.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Mapping
from pathlib import Path

from bench import chat_bodies
from bench.codec_samples import samples
from umg_grpc.service.pipeline.rate_limit_token_estimates import estimate_tokens
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT_FORMAT
from umg_grpc.wire.core import sse

ROOT = Path(__file__).parents[1]
MODULES = (
    "umg_grpc/service/pipeline/rate_limit_token_estimates.py",
    "umg_grpc/wire/chat/decode_messages.py",
    "umg_grpc/wire/chat/passthrough_stream.py",
    "umg_grpc/wire/chat/usage.py",
    "umg_grpc/wire/core/json_decoding.py",
    "umg_grpc/wire/core/lenient_number_reading.py",
    "umg_grpc/wire/core/sse.py",
    "umg_grpc/wire/core/stream_decoder.py",
)
COPIED = ("umg_grpc", "gen")
REPEATS = 9
PART_OF_AUTORANGE = 4


def works() -> Mapping[str, Callable[[], object]]:
    """Return the measured functions by name. Each spends most of its time in one of the modules."""
    body = chat_bodies.request_body(chat_bodies.SMALL)
    request = CHAT_FORMAT.decode_request(body, {}).canonical
    stream = samples()["chat"].stream(100)

    def passed(*reads: bytes) -> None:
        decoder = CHAT_FORMAT.passthrough_decoder(pb.GenerateRequest(model="public"))
        for read in (stream.opening, *reads):
            decoder.feed(read)

    return {
        "request of a chat call": lambda: CHAT_FORMAT.decode_request(body, {}),
        "tokens of a request, estimated": lambda: estimate_tokens(request, pb.Model()),
        "events of 100 frames": lambda: list(sse.split(b"".join(stream.deltas))),
        "100 passed frames, each read alone": lambda: passed(*stream.deltas),
        "100 passed frames in one read": lambda: passed(b"".join(stream.deltas)),
    }


def measure() -> dict[str, float]:
    """Return the shortest time of each work in microseconds."""
    found = {}
    for name, work in works().items():
        timer = timeit.Timer(work)
        number = max(1, timer.autorange()[0] // PART_OF_AUTORANGE)
        found[name] = min(timer.repeat(REPEATS, number)) / number * 1e6
    return found


def measured_in(tree: Path) -> dict[str, float]:
    """Measure the packages in the folder `tree` in a process of its own."""
    paths = os.pathsep.join(map(str, (tree, tree / "gen", ROOT)))
    command = [sys.executable, "-m", "bench.compiled_modules", "--measure"]
    done = subprocess.run(
        command, cwd=tree, env={**os.environ, "PYTHONPATH": paths}, check=True, stdout=subprocess.PIPE
    )
    times: dict[str, float] = json.loads(done.stdout)
    return times


def compile_copy(folder: Path) -> Path:
    """Copy the packages into a folder, and compile the modules there. Return the folder of the copy."""
    tree = folder / "compiled"
    for package in COPIED:
        shutil.copytree(ROOT / package, tree / package)
    command = [sys.executable, "-m", "Cython.Build.Cythonize", "--inplace", "-3", "--quiet", *MODULES]
    quiet = {**os.environ, "CFLAGS": "-O3 -w"}  # the generated code has many warnings
    subprocess.run(command, cwd=tree, env=quiet, check=True, stdout=subprocess.DEVNULL)
    return tree


def table(rounds: int) -> str:
    """Measure both forms in turn. Return a Markdown table of the shortest times."""
    plain, compiled = dict[str, float](), dict[str, float]()
    with tempfile.TemporaryDirectory(prefix="compiled-") as folder:
        tree = compile_copy(Path(folder))
        for _ in range(rounds):
            for place, best in ((ROOT, plain), (tree, compiled)):
                best.update({name: min(time, best.get(name, time)) for name, time in measured_in(place).items()})
    rows = [
        f"| us, Python {'.'.join(map(str, sys.version_info[:3]))} | interpreted | compiled | ratio |",
        "|---|--:|--:|--:|",
    ]
    for name, time in plain.items():
        rows.append(f"| {name} | {time:.1f} | {compiled[name]:.1f} | {time / compiled[name]:.2f} |")
    return "\n".join(rows)


def main() -> int:
    """Run the command. Return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.compiled_modules", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each form, in turn (default: 3)")
    parser.add_argument("--measure", action="store_true", help="only measure the modules that Python finds, as JSON")
    arguments = parser.parse_args()
    print(json.dumps(measure()) if arguments.measure else table(arguments.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
