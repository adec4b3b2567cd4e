"""Child process that runs llama.cpp's HTTP server for one model, on a free port of the loopback interface (`python -m
umg_grpc.upstream.local.llama_server`). It reads its `ProcessSettings` as a line of JSON from stdin (so that `ps` does
not show the key), writes a `ReadyLine` to stdout when the server is ready, and exits when stdin ends. The kernel closes
this pipe however the gateway ends. Standard error is llama.cpp's log.
"""

import ctypes
import json
import os
import signal
import sys
from typing import Protocol, TypedDict
from urllib.parse import urlsplit

PROMPT_CACHE_MIB = 256  # states of prompts without a slot; llama.cpp's default is 8 GiB
BATCH_TOKENS = 64  # half a second of one core, for which a prompt delays the other slots and its own cancellation
HTTP_THREADS = 64  # each request and each idle connection occupies one, so more than the slots are needed
ERRORS_ONLY = 1  # llama.cpp's verbosity; from 2 on it logs every request
PR_SET_PDEATHSIG = 1


class ProcessSettings(TypedDict):
    """Settings of the child process, the first line of its standard input."""

    weights: str
    model: str
    api_key: str
    slots: int
    slot_context: int
    threads: int


class ReadyLine(TypedDict):
    """Line on standard output by which the child process states that its server is ready: the port of the server."""

    port: int


class LlamaServer(Protocol):
    """Interface of `xllamacpp.Server`, which loads the model when it is created, and serves in its own threads."""

    @property
    def listening_address(self) -> str: ...


def serve(settings: ProcessSettings) -> LlamaServer:
    """Return llama.cpp's HTTP server with a model when it is ready. Raise RuntimeError for unusable weights."""
    from xllamacpp import CommonParams, Server  # imported here: the gateway imports this module for its types

    params = CommonParams()
    params.model.path = settings["weights"]
    params.model_alias = {settings["model"]}
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.api_keys = [settings["api_key"]]
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["slots"] * settings["slot_context"]
    params.kv_unified = False  # separate contexts, so that a long request cannot make another slot fail
    params.cont_batching = True
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.cache_prompt = True
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.n_threads_http = HTTP_THREADS
    params.n_gpu_layers = 0
    params.fit_params = False  # else it reads the weights twice, to fit other parameters into the memory of a GPU
    params.use_jinja = True
    params.ui = params.endpoint_slots = False
    params.verbosity = ERRORS_ONLY
    server: LlamaServer = Server(params)
    return server


def main() -> None:
    """Run the server until stdin ends. Signals are ignored: a gateway that shuts down still needs the model."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if (
        sys.platform == "linux"
    ):  # exits at once, even while the model loads; on other systems the end of stdin ends the process
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of llama.cpp must not be mixed with the Ready line
    settings: ProcessSettings = json.loads(sys.stdin.readline())
    server = serve(settings)
    ready = ReadyLine(port=urlsplit(server.listening_address).port or 0)
    print(json.dumps(ready), file=stdout, flush=True)
    sys.stdin.read()
    os._exit(0)  # nothing to save, and requests in flight would delay an orderly exit


if __name__ == "__main__":
    main()
