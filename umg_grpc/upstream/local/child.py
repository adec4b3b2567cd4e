"""The child process: llama.cpp's own HTTP server for one GGUF file on a free port of the loopback.

Run as `python -m umg_grpc.upstream.local.child`. Reads its `Settings` as one line of JSON from stdin (the key must not
be seen in `ps`), writes a `Ready` line to stdout when it can serve, and lives until its stdin ends: whatever becomes of
the gateway, the kernel closes that pipe. Standard error is llama.cpp's log.
"""

import ctypes
import json
import os
import signal
import sys
from typing import Protocol, TypedDict
from urllib.parse import urlsplit

PROMPT_CACHE_MIB = 256  # states of prompts that lost their slot; llama.cpp would take 8 GiB
BATCH_TOKENS = 64  # half a second of one core: how long a prompt keeps the other slots, and its own end, waiting
HTTP_THREADS = 64  # one is held by each request and by each idle connection, so slots alone are too few
ERRORS_ONLY = 1  # llama.cpp's verbosity: from 2 on it writes lines for every request
PR_SET_PDEATHSIG = 1


class Settings(TypedDict):
    """What the child serves, as the first line of its stdin."""

    weights: str
    model: str
    api_key: str
    slots: int
    slot_context: int
    threads: int


class Ready(TypedDict):
    """The only line on the child's stdout."""

    port: int


class LlamaServer(Protocol):
    """`xllamacpp.Server`, as far as it is used: it loads and listens when made, on threads of its own."""

    @property
    def listening_address(self) -> str: ...


def serve(settings: Settings) -> LlamaServer:
    """A server that is ready. Raises RuntimeError if the weights cannot be loaded."""
    from xllamacpp import CommonParams, Server  # here: the gateway imports this module for its types

    params = CommonParams()
    params.model.path = settings["weights"]
    params.model_alias = {settings["model"]}
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.api_keys = [settings["api_key"]]
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["slots"] * settings["slot_context"]
    params.kv_unified = False  # a slot's context is its own: a long request cannot make a neighbour fail
    params.cont_batching = True
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.cache_prompt = True
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.n_threads_http = HTTP_THREADS
    params.n_gpu_layers = 0
    params.use_jinja = True
    params.ui = params.endpoint_slots = False
    params.verbosity = ERRORS_ONLY
    server: LlamaServer = Server(params)
    return server


def main() -> None:
    """Serves until stdin ends. Interrupts meant for the gateway are not meant for us: it drains, which needs us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if sys.platform == "linux":  # at once, even while the model loads; elsewhere the end of stdin does it
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what llama.cpp prints must not be taken for our line
    settings: Settings = json.loads(sys.stdin.readline())
    server = serve(settings)
    ready = Ready(port=urlsplit(server.listening_address).port or 0)
    print(json.dumps(ready), file=stdout, flush=True)
    sys.stdin.read()
    os._exit(0)  # nothing to save, and answers under way would hold up an orderly exit


if __name__ == "__main__":
    main()
