"""Runs the gateway's processes: one, or a parent and its workers."""

import asyncio
import gc
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version

import structlog
import uvloop

from umg_grpc import logs
from umg_grpc.access.bootstrap import VARIABLE, Bootstrap, ensure_bootstrap
from umg_grpc.assembly import LocalSource
from umg_grpc.cli.config import read
from umg_grpc.cli.files import raise_file_limit
from umg_grpc.cli.serve import GRPC, Address, Options, gateway, local_model, served_part
from umg_grpc.cli.signals import Signals
from umg_grpc.cli.workers import WITH_LOCAL, WORKER, RelayedModel, Workers, follow_parent
from umg_grpc.config import Config, ConfigError
from umg_grpc.errors import UmgError
from umg_grpc.routing import Router
from umg_grpc.server import Service
from umg_grpc.store import StoreError, open_store
from umg_grpc.upstream.local.supervisor import LocalModel
from umg_grpc.v1 import pb

logger = structlog.get_logger()

FIRST_LOAD_SECONDS = 60.0
SWITCH_SECONDS = 0.0005


def run(options: Options, config: Config) -> int:
    """Serves until it is told to stop. 0 after a drain, 1 when it could not start."""
    logs.configure(config.log.level, config.log.format)
    alone = _serve if options.workers == 1 else _serve_workers
    serve = _work if WORKER in os.environ else alone
    try:
        raise_file_limit()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(options, config))
    except (OSError, StoreError, UmgError) as error:
        print(f"umg: {error}", file=sys.stderr)
        return 1
    return 0


async def _serve(options: Options, config: Config) -> None:
    """The whole gateway in this process."""
    told = Signals()
    async with local_model(options, config) as local:
        # a face apart serves no models itself
        served = served_part(config, local=local is not None) if GRPC in options.faces else config
        async with gateway(options, served, os.environ, local) as state:
            told.reload = _reloading(options, state.service, local) or told.reload
            await _loaded(local, told.stop)
            if not told.stop.is_set():
                _announce(state.http, state.grpc, state.bootstrap, served)
                tune()
            await told.stop.wait()
            logger.info("draining", seconds=served.drain)


async def _serve_workers(options: Options, config: Config) -> None:
    """A parent that serves nothing itself."""
    told = Signals()
    bootstrap = None
    if GRPC in options.faces:
        store = await open_store(config.database, options.data)
        try:
            bootstrap = await ensure_bootstrap(store, options.data, os.environ.get(VARIABLE))
        finally:
            await store.aclose()
    async with local_model(options, config) as local:
        served = served_part(config, local=local is not None)
        workers = Workers(options, served, local)
        try:
            await workers.start()
            told.reload = workers.reload
            await _loaded(local, told.stop)
            await workers.wait_serving(told.stop)
            if not told.stop.is_set():
                _announce(workers.http, workers.grpc, bootstrap, served)
            await told.stop.wait()
            logger.info("draining", seconds=served.drain)
        finally:
            await workers.close()


async def _work(options: Options, config: Config) -> None:
    """One worker, until its parent tells it to stop or is gone."""
    told = Signals()
    model = RelayedModel() if os.environ[WORKER] == WITH_LOCAL else None
    served = served_part(config, local=model is not None)
    async with gateway(replace(options, share_ports=True), served, os.environ, model) as state:
        told.reload = _reloading(options, state.service, model) or told.reload
        print("serving", flush=True)
        tune()
        parent = asyncio.create_task(follow_parent(model), name="parent")
        parent.add_done_callback(lambda _: told.stop.set())
        await told.stop.wait()
        parent.cancel()
        await asyncio.wait([parent])


def tune() -> None:
    """Sets the interpreter for serving.

    What the start made is never looked at again by the garbage collector, and the rest less often: a call leaves a few
    cycles and hundreds of young objects, and with the interpreter's own thresholds the search for the former takes a
    tenth of the time of a call. The oldest are searched more often: among them is what was left of calls that were
    under way at a search. Threads get their turn sooner: a row for the database passes from thread to thread a dozen
    times, and at a busy time would wait each time for the interpreter's own 5 ms.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 2)
    sys.setswitchinterval(SWITCH_SECONDS)


async def _loaded(local: LocalModel | None, stop: asyncio.Event) -> None:
    """Waits until the local model can answer, so that the first call printed below does."""
    if local is None:
        return
    print("loading the local model ...", flush=True)
    stopped = asyncio.create_task(stop.wait())
    ready = asyncio.create_task(local.wait_ready(FIRST_LOAD_SECONDS))
    await asyncio.wait([stopped, ready], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    ready.cancel()
    for outcome in await asyncio.gather(stopped, ready, return_exceptions=True):
        if isinstance(outcome, UmgError):
            logger.warning("serving while the local model still loads", reason=outcome.message)


def _reloading(options: Options, service: Service | None, local: LocalSource | None) -> Callable[[], None] | None:
    """What takes the channels and models of the file again; None where nothing of it is served. A bad file keeps the
    old ones and says so.
    """
    if service is None:
        return None

    def reload() -> None:
        try:
            config = served_part(read(options.config, os.environ), local=local is not None)
            service.reload(config)
        except (ConfigError, OSError, UmgError, UnicodeDecodeError) as error:
            logger.error("the config was not reloaded; the old one stays", problem=str(error))
        else:
            logger.info("the config was reloaded", channels=len(config.channels))

    return reload


def _announce(http: Address | None, grpc: Address, bootstrap: Bootstrap | None, config: Config) -> None:
    """Says where it serves, with which key, and what to try."""
    print(f"Unified Model Gateway {version('unified-model-gateway')} is serving")
    if http is not None:
        print(f"  HTTP    http://{http}")
    if config.public_url is not None:
        print(f"  public  {config.public_url}")
    if bootstrap is None:  # a facade apart: keys and models are the service's
        print(f"  gRPC    {grpc} (the service that this face calls)")
        print(f"try it:\ncurl http://{http}/v1/models -H 'Authorization: Bearer YOUR_KEY'", flush=True)
        return
    kept = f"  (kept in {bootstrap.file})" if bootstrap.file else "  (from UMG_API_KEY)"
    print(f"  gRPC    {grpc}")
    print(f"  key     {bootstrap.secret}{kept}")
    if bootstrap.revoked:
        print("          this key was revoked: set another UMG_API_KEY, or delete its file to get a new one")
    described = [model.described for model in Router(config).models()]
    models = [model.id for model in described]
    shown = ", ".join(models[:8]) + (f" and {len(models) - 8} more" if len(models) > 8 else "")
    print(f"  models  {shown or 'none: add a channel to the config'}")
    if models:
        talking = (model.id for model in described if pb.MODEL_OPERATION_GENERATE in model.operations)
        print(f"try it:\n{_trial(http, grpc, bootstrap.secret, next(talking, None))}")
    sys.stdout.flush()


def _trial(http: Address | None, grpc: Address, key: str, model: str | None) -> str:
    """A line to paste into another terminal; `model` generates text, None where none does."""
    if http is None:
        return f"umg chat --grpc {grpc}"
    if model is None:
        return f"curl http://{http}/v1/models -H 'Authorization: Bearer {key}'"
    question = [{"role": "user", "content": "Say hello in one sentence."}]
    body = json.dumps({"model": model, "stream": True, "messages": question})
    return (
        f"curl -N http://{http}/v1/chat/completions -H 'Authorization: Bearer {key}'"
        f" -H 'Content-Type: application/json' -d '{body}'"
    )
