"""Processes of `umg serve`: one that serves, or a parent and several workers that share its ports."""

import asyncio
import gc
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path

import msgspec
import structlog
import uvloop

from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.bootstrap_key import BOOTSTRAP_KEY_VARIABLE, Bootstrap, ensure_bootstrap
from umg_grpc.access.key_settings import BOOTSTRAP_KEY
from umg_grpc.access.multi_worker_limit_rejection import check_start
from umg_grpc.access.sessions import CODE_MINUTES, UserSessions
from umg_grpc.base import gateway_log
from umg_grpc.base.errors import UmgError
from umg_grpc.base.printable_text import printable
from umg_grpc.base.shell_quoting import shell_json, shell_word
from umg_grpc.config import Address, Config, ConfigError
from umg_grpc.config.importers.from_environment import unused_providers
from umg_grpc.process.channel_factory import LocalSource
from umg_grpc.process.channel_file_checks import check_authorities
from umg_grpc.process.config_loading import read
from umg_grpc.process.exposure_checks import check_exposure
from umg_grpc.process.interpreter_optimization_check import BUILD_REMEDY, missing_optimizations
from umg_grpc.process.model_list_report import failed_lists
from umg_grpc.process.open_file_limit import raise_file_limit
from umg_grpc.process.proxy_report import proxy_lines
from umg_grpc.process.reload_sockets import MAX_PROBLEM_CHARACTERS, Outcome, reload_socket
from umg_grpc.process.retired_model_report import retired_models
from umg_grpc.process.serve_options import GRPC_FACE, Options
from umg_grpc.process.serve_process import Gateway, drain_delay, gateway, local_model, served_part
from umg_grpc.process.service_factory import PreparedConfig, Service
from umg_grpc.process.signal_handlers import Signals
from umg_grpc.process.tls_certificates import Certificates
from umg_grpc.process.tls_certificates import load as load_certificate
from umg_grpc.process.worker_processes import WITH_LOCAL, WORKER_VARIABLE, RelayedModel, Workers, follow_parent
from umg_grpc.routing import unserved_models
from umg_grpc.service.stored_model_lists import list_states, stored_router
from umg_grpc.store import StoreError, open_store
from umg_grpc.store.provider_model_list_files import ModelListFiles
from umg_grpc.store.repeated_background_tasks import Background
from umg_grpc.upstream.local.model_process_supervisor import LocalModel
from umg_grpc.v1 import pb

logger = structlog.get_logger()

FIRST_LOAD_SECONDS = 60.0
SWITCH_SECONDS = 0.0005
RELOAD_END_SECONDS = 10.0


def run(options: Options, config: Config) -> int:
    """Run the gateway until a stop signal. Return the exit code: 0 after a regular shutdown, 1 if the start failed."""
    gateway_log.configure(config.log.level, config.log.format)
    alone = _serve if options.workers == 1 else _serve_workers
    serve = _serve_worker if WORKER_VARIABLE in os.environ else alone
    try:
        raise_file_limit()
        if WORKER_VARIABLE not in os.environ:
            check_exposure(options, config, os.environ)
            check_authorities(os.environ)
            for line in retired_models(config, datetime.now(UTC).date()):
                logger.warning(line)
            for line in unserved_models(config):
                logger.warning(line)
            if config.tls is not None:
                load_certificate(config.tls)  # before a worker starts, which would be started again and again
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(options, config))
    except (OSError, StoreError, UmgError) as error:
        print(f"umg: {error}", file=sys.stderr)
        return 1
    return 0


async def _serve(options: Options, config: Config) -> None:
    signals = Signals()
    async with local_model(options, config) as local, AsyncExitStack() as stack:
        # an HTTP face without its service serves no models itself
        served = served_part(config, local=local is not None) if GRPC_FACE in options.faces else config
        async with gateway(options, served, os.environ, local) as state:
            reload = _make_reload(options, state.service, local, state.certificates)
            if reload is not None:
                signals.reload = _in_background(reload, lambda _: None, stack)
                await stack.enter_async_context(reload_socket(options.data, partial(_reload_alone, reload)))
            await _wait_loaded(local, signals.stop)
            await _wait_listed(state.service, served, signals.stop)
            if not signals.stop.is_set():
                _print_start(state, served, options, await _sign_in_link(state, served, options))
                tune()
            await signals.stop.wait()
            await _delay_drain(state, signals, drain_delay(options, served))
            logger.info("draining", seconds=served.drain)


async def _serve_workers(options: Options, config: Config) -> None:
    signals = Signals()
    async with local_model(options, config) as local, AsyncExitStack() as stack:
        served = served_part(config, local=local is not None)
        workers = Workers(options, served, local)
        try:
            workers.bind()
            bootstrap = await _first_key(options, config) if GRPC_FACE in options.faces else None
            await workers.start()
            signals.reload = workers.signal_reload
            if GRPC_FACE in options.faces:
                await stack.enter_async_context(reload_socket(options.data, workers.reload))
            await _wait_loaded(local, signals.stop)
            await workers.wait_serving(signals.stop)
            if not signals.stop.is_set():
                state = Gateway(workers.http, workers.grpc, None, bootstrap, workers.metrics)
                _print_start(state, served, options, await _sign_in_link(state, served, options))
            await signals.stop.wait()
            workers.stop()
            if (delay := drain_delay(options, served)) and await signals.delay(delay):
                workers.stop()  # a second signal ends the wait of the workers too
            logger.info("draining", seconds=served.drain)
        finally:
            await workers.close()


async def _first_key(options: Options, config: Config) -> Bootstrap:
    """Return the bootstrap key of the database, which is created if there is none."""
    store = await open_store(config.database, options.data)
    try:
        if config.redis is None:
            check_start(await ApiKeys(store).list(), config.models, options.workers)
        variable, replace_key = os.environ.get(BOOTSTRAP_KEY_VARIABLE), options.replace_bootstrap_key
        exposed = bool(options.exposed)
        return await ensure_bootstrap(store, options.data, variable, replace=replace_key, exposed=exposed)
    finally:
        await store.aclose()


async def _serve_worker(options: Options, config: Config) -> None:
    signals = Signals()
    model = RelayedModel() if os.environ[WORKER_VARIABLE] == WITH_LOCAL else None
    served = served_part(config, local=model is not None)
    async with (
        gateway(replace(options, share_ports=True), served, os.environ, model) as state,
        AsyncExitStack() as stack,
    ):
        if (reload := _make_reload(options, state.service, model, state.certificates)) is not None:
            signals.reload = _in_background(reload, _print_outcome, stack)
        await _wait_listed(state.service, served, signals.stop)  # the parent prints the models of the lists
        print("serving", flush=True)
        tune()
        parent = asyncio.create_task(follow_parent(model), name="parent")
        parent.add_done_callback(lambda _: signals.stop.set())
        await signals.stop.wait()
        parent.cancel()
        await asyncio.wait([parent])
        await _delay_drain(state, signals, drain_delay(options, served))


async def _delay_drain(state: Gateway, signals: Signals, seconds: float) -> None:
    """Announce the shutdown to load balancers, which then send no calls. Wait `seconds`, or until a signal."""
    await state.announce_drain()
    if seconds > 0:
        logger.info("shutdown announced; calls are still accepted", seconds=seconds)
        await signals.delay(seconds)


def tune() -> None:
    """Set the interpreter's garbage collector and thread switching for serving. Objects of the start are exempt from
    garbage collection, and young objects are collected less often: a call leaves a few cycles among hundreds of young
    objects, and with the default thresholds their collection takes a tenth of the time of a call. The oldest
    generation, with the remains of calls that were in flight during a collection, is collected more often. Threads
    switch sooner: a database row passes between threads a dozen times, and under load would wait each time for the
    default of 5 ms.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 2)
    sys.setswitchinterval(SWITCH_SECONDS)


async def _wait_loaded(local: LocalModel | None, stop: asyncio.Event) -> None:
    """Wait until the local model (if any) is ready or `stop` is set, so that the printed example call can succeed."""
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


async def _wait_listed(service: Service | None, config: Config, stop: asyncio.Event) -> None:
    """Wait until the first model lists are read, so that they can be printed. The wait ends at the time limit of the
    config, or if `stop` is set. Calls are served meanwhile.
    """
    if service is None:
        return
    waits = [
        asyncio.create_task(service.wait_listed(config.discovery.wait), name="first model lists"),
        asyncio.create_task(stop.wait(), name="stop"),
    ]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    await asyncio.wait(waits)


def _make_reload(
    options: Options, service: Service | None, local: LocalSource | None, certificates: Certificates | None
) -> Callable[[], Awaitable[Outcome]] | None:
    """Return the function that reloads TLS certificate, channels and models; None without a service."""
    if service is None:
        return None
    turn = asyncio.Lock()

    def read_config() -> Config:
        return served_part(read(options.config, os.environ, options.data), local=local is not None)

    state = service.config_state
    state.flags, state.read = options.flags, read_config
    if isinstance(options.config, Path):
        state.read_text = partial(options.config.read_text, encoding="utf-8")

    def prepare() -> tuple[Config, PreparedConfig]:
        with _no_collections():
            config = read_config()
            service.check(config)
            return config, service.prepare(config)

    async def reload() -> Outcome:
        async with turn:
            return await reload_now()

    async def reload_now() -> Outcome:
        process = os.getpid()
        try:
            config, prepared = await asyncio.to_thread(prepare)
            if certificates is not None:
                certificates.reload()
            found = service.reload(config, prepared)
            await asyncio.to_thread(service.unpriced.log)
        except (ConfigError, OSError, UmgError, UnicodeDecodeError) as error:
            service.metrics.reloaded(success=False)
            state.failed(error)
            logger.error("the config was not reloaded; the old one stays", process=process, problem=str(error))
            return Outcome(process, str(error)[:MAX_PROBLEM_CHARACTERS])
        service.metrics.reloaded(success=True)
        write = logger.warning if found.need_restart else logger.info
        outcome = Outcome(process, changed=found.applied, needs_restart=found.need_restart)
        write(
            "the config was reloaded",
            process=process,
            channels=len(config.channels),
            changed=outcome.changed,
            needs_restart=outcome.needs_restart or None,
        )
        return outcome

    return reload


@contextmanager
def _no_collections() -> Iterator[None]:
    """Suspend the garbage collection while a config is built in a thread, and exempt the config's objects from later
    collections. A collection that visits all of them stops the process for a tenth of a second.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _in_background(
    reload: Callable[[], Awaitable[Outcome]], report: Callable[[Outcome], None], stack: AsyncExitStack
) -> Callable[[], None]:
    """Return a function that starts a reload in the background, until `stack` is closed."""

    async def step() -> None:
        report(await reload())

    background = Background("reload of the config", step)
    stack.push_async_callback(background.aclose, RELOAD_END_SECONDS)
    return background.wake


def _print_outcome(outcome: Outcome) -> None:
    print(msgspec.json.encode(outcome).decode(), flush=True)


async def _sign_in_link(state: Gateway, config: Config, options: Options) -> str:
    """Return a link that opens one session of the first key's owner, for the terminal of a gateway that other machines
    cannot reach; "" for any other gateway.
    """
    has_pages = state.http is not None and GRPC_FACE in options.faces and config.pages and config.public_url is None
    if not has_pages or options.exposed or not sys.stdout.isatty():
        return ""
    store = await open_store(config.database, options.data)
    try:
        key = await ApiKeys(store).get(BOOTSTRAP_KEY)
        code = await UserSessions(store, config.sign_on.sessions).new_code(key.key_id)
    except UmgError:
        return ""
    finally:
        await store.aclose()
    scheme = "http" if config.tls is None else "https"
    return f"{scheme}://{state.http}/auth/login?return=/console#code={code}"


async def _reload_alone(reload: Callable[[], Awaitable[Outcome]]) -> Sequence[Outcome]:
    return [await reload()]


def _print_start(state: Gateway, config: Config, options: Options, sign_in_link: str) -> None:
    """Print addresses, models and an example call; also the bootstrap key, if new and the output is a terminal, and
    `sign_in_link` unless it is empty.
    """
    grpc, bootstrap = state.grpc, state.bootstrap
    scheme = "http" if config.tls is None else "https"
    http = f"{scheme}://{state.http}" if state.http is not None else None
    data = options.data
    print(f"Unified Model Gateway {version('unified-model-gateway')} is serving")
    if options.workers_fit_cores:
        print(f"  workers {options.workers} (auto: one for each core that this process may use)")
    if http is not None:
        print(f"  HTTP    {http}")
    if config.public_url is not None:
        print(f"  public  {config.public_url}")
    if state.metrics is not None:
        print(f"  metrics http://{state.metrics}/metrics")
    if bootstrap is None:  # an HTTP face without its service, which has the keys and models
        print(f"  gRPC    {grpc} (the service that this face calls)")
        print(f"try it:\ncurl {http}/v1/models -H 'Authorization: Bearer YOUR_KEY'", flush=True)
        return
    print(f"  gRPC    {grpc}")
    if bootstrap.created and bootstrap.file is not None and sys.stdout.isatty():
        print(f"  key     {bootstrap.secret}  (stored in {bootstrap.file}, printed only now)")
    if sign_in_link:
        print(f"  sign in {sign_in_link}  (once, within {CODE_MINUTES} minutes)")
    router = state.service.router if state.service is not None else stored_router(config, data)
    described = [model.described for model in router.models()]
    patterns = [
        model.id
        for channel in config.channels
        for model in channel.models
        if "*" in model.id and channel.discovery != "only"
    ]
    models = [*(model.id for model in described), *dict.fromkeys(patterns)]
    shown = ", ".join(map(printable, models[:8])) + (f" and {len(models) - 8} more" if len(models) > 8 else "")
    print(f"  models  {shown or 'none: add a channel to the config'}")
    for line in failed_lists(list_states(config, ModelListFiles(data))):
        print(f"  list    {line}")
    for line in proxy_lines(config):
        print(f"  proxy   {line}")
    if missing := missing_optimizations():
        print(f"  python  built without {' and '.join(missing)}: calls take up to 1.9 times as long; {BUILD_REMEDY}")
    if unused := unused_providers(config, os.environ):
        names = ", ".join(f"{provider.variable} ({provider.name})" for provider in unused)
        print(f"  unused  {names}: `umg serve --from-env` serves them, `umg init` writes a config")
    if models:
        text_models = (model.id for model in described if pb.MODEL_OPERATION_GENERATE in model.operations)
        print(f"try it:\n{_example_call(http, grpc, bootstrap, next(text_models, None))}")
    sys.stdout.flush()


def _example_call(http: str | None, grpc: Address, bootstrap: Bootstrap, model: str | None) -> str:
    """Return an example call for a shell: a request to a model, or to the model list if `model` is None."""
    if http is None:
        return f"umg chat --grpc {grpc}"
    header = f'-H "Authorization: Bearer {_shell_word(bootstrap)}"'
    if model is None:
        return f"curl {http}/v1/models {header}"
    question = [{"role": "user", "content": "Say hello in one sentence."}]
    body = shell_json({"model": model, "stream": True, "messages": question})
    return f"curl -N {http}/v1/chat/completions {header} -H 'Content-Type: application/json' -d {body}"


def _shell_word(bootstrap: Bootstrap) -> str:
    if bootstrap.file is not None:
        return f"$(cat {shell_word(str(bootstrap.file))})"
    return "YOUR_KEY" if bootstrap.secret is None else f"${BOOTSTRAP_KEY_VARIABLE}"
