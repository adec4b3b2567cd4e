"""Commands of `umg` and their flags. The docstrings of the command functions are the help texts that users see.

A command imports its implementation in its body, so that a start loads only the needed modules.
"""

import os
import sys
from contextlib import nullcontext, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from umg_grpc.base.printable_text import printable
from umg_grpc.cli import (
    account_commands,
    alert_commands,
    channel_commands,
    config_commands,
    conformance_commands,
    image_commands,
    import_commands,
    key_commands,
    price_commands,
    provider_commands,
    task_record_commands,
    usage_commands,
    user_commands,
    video_commands,
)
from umg_grpc.cli.command_headings import CommandsByHeading, Heading
from umg_grpc.cli.command_runner import run_async
from umg_grpc.cli.common_flags import DATA_FOLDER, AdminTarget, ConfigFlag, DataFlag, prints_table, takes
from umg_grpc.cli.gateway_connection import DEFAULT_ADDRESS, CaFlag, GrpcFlag, KeyFlag, TlsFlag, grpc_target
from umg_grpc.cli.text_tables import Form

if TYPE_CHECKING:
    from umg_grpc.config import Config, Tls

app = typer.Typer(cls=CommandsByHeading, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
app.add_typer(key_commands.app, name="keys", rich_help_panel=Heading.KEYS)
app.add_typer(account_commands.organizations, name="organizations", rich_help_panel=Heading.KEYS)
app.add_typer(account_commands.projects, name="projects", rich_help_panel=Heading.KEYS)
app.add_typer(user_commands.users, name="users", rich_help_panel=Heading.KEYS)
app.add_typer(user_commands.audit, name="audit", rich_help_panel=Heading.KEYS)
app.command(rich_help_panel=Heading.START)(provider_commands.init)
app.command(rich_help_panel=Heading.MODELS)(provider_commands.providers)
app.add_typer(price_commands.app, name="prices", rich_help_panel=Heading.MODELS)
app.add_typer(channel_commands.app, name="channels", rich_help_panel=Heading.MODELS)
app.add_typer(alert_commands.app, name="alerts", rich_help_panel=Heading.MODELS)
app.add_typer(config_commands.app, name="config", rich_help_panel=Heading.MODELS)
app.add_typer(import_commands.app, name="import", rich_help_panel=Heading.START)
app.command(rich_help_panel=Heading.KEYS)(usage_commands.usage)
app.command(rich_help_panel=Heading.KEYS)(usage_commands.summary)
app.command(rich_help_panel=Heading.CALLS)(image_commands.image)
conformance_commands.add_to(app)
app.add_typer(usage_commands.requests, name="requests", rich_help_panel=Heading.KEYS)
app.command(rich_help_panel=Heading.CALLS)(video_commands.video)
task_record_commands.add_to(video_commands.tasks)
app.add_typer(video_commands.tasks, name="tasks", rich_help_panel=Heading.CALLS)

DEFAULT_HTTP = "127.0.0.1:8080"


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"umg {version('unified-model-gateway')}")
        raise typer.Exit


@app.callback()
def main_options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """One service in front of every AI model provider."""


@app.command(rich_help_panel=Heading.START)
def serve(
    *,
    config: ConfigFlag = None,
    from_env: Annotated[
        bool, typer.Option("--from-env", help="Without a file: the providers whose keys are in the environment.")
    ] = False,
    http: Annotated[str, typer.Option(metavar="HOST:PORT", help="Port 0: any free one.")] = DEFAULT_HTTP,
    grpc: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="With --faces http: the service to call.")
    ] = DEFAULT_ADDRESS,
    data: DataFlag = DATA_FOLDER,
    workers: Annotated[
        str, typer.Option(metavar="N|auto", help="Processes that share the ports; auto: one for each usable core.")
    ] = "1",
    faces: Annotated[str, typer.Option(help="`http,grpc`, or one of them.")] = "http,grpc",
    replace_bootstrap_key: Annotated[
        bool, typer.Option("--replace-bootstrap-key", help="Replace the first key that the database has.")
    ] = False,
    metrics: Annotated[
        str | None, typer.Option(hidden=True)
    ] = None,  # passed to workers instead of the address in the config
) -> None:
    """Serve HTTP and gRPC until SIGTERM or Ctrl-C, which lets calls under way end first."""
    from umg_grpc.base.lazy_logger import import_structlog

    import_structlog()  # before the modules that import it themselves
    from umg_grpc.config import Address
    from umg_grpc.process.config_loading import FROM_ENVIRONMENT, load
    from umg_grpc.process.gateway_processes import run
    from umg_grpc.process.serve_options import AUTO_WORKERS, SERVED_FACES, Options, worker_count

    if from_env and config is not None:
        raise typer.BadParameter("expected either --config or --from-env", param_hint="--from-env")
    wanted = tuple(face for face in SERVED_FACES if face in {name.strip() for name in faces.split(",")})
    if not wanted or {name.strip() for name in faces.split(",")} - set(SERVED_FACES):
        raise typer.BadParameter("expected http,grpc or one of them", param_hint="--faces")
    try:
        listener = Address.parse(metrics) if metrics is not None else None
        options = Options(
            *(
                FROM_ENVIRONMENT if from_env else config,
                Address.parse(http),
                Address.parse(grpc),
                data,
                wanted,
                worker_count(workers),
            ),
            workers_fit_cores=workers == AUTO_WORKERS,
            metrics=listener,
            replace_bootstrap_key=replace_bootstrap_key,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    raise typer.Exit(run(options, load(options.config, options.data)))


@app.command(rich_help_panel=Heading.INTERFACES)
def openapi() -> None:
    """Print the OpenAPI 3.1 document of the HTTP face, as GET /openapi.json returns it."""
    from http_facade.openapi.openapi_document import document_json

    sys.stdout.buffer.write(document_json() + b"\n")


@app.command(rich_help_panel=Heading.START)
@prints_table
def doctor(
    *,
    config: ConfigFlag = None,
    data: DataFlag = DATA_FOLDER,
    http: Annotated[str, typer.Option(metavar="HOST:PORT", help="HTTP address of the gateway.")] = DEFAULT_HTTP,
    grpc: Annotated[str, typer.Option(metavar="HOST:PORT", help="gRPC address of the gateway.")] = DEFAULT_ADDRESS,
    form: Form,
) -> None:
    """Check whether a gateway can run here: Python, ports, database, Redis, files, limits. Exit with 1 if not."""
    from umg_grpc.cli.doctor_command import Machine, examine
    from umg_grpc.config import Address
    from umg_grpc.process.config_loading import load

    try:
        addresses = Address.parse(http), Address.parse(grpc)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    machine = Machine(load(config, data), data, *addresses)

    async def run_checks() -> None:
        if code := await examine(machine, form):
            raise typer.Exit(code)

    run_async(run_checks())


@app.command(rich_help_panel=Heading.START)
def health(
    *,
    http: Annotated[str, typer.Option(metavar="HOST:PORT", help="HTTP address of the gateway.")] = DEFAULT_HTTP,
    ready: Annotated[bool, typer.Option("--ready", help="Whether it accepts calls, not only whether it runs.")] = False,
    tls: Annotated[bool, typer.Option("--tls", help="Connect with TLS, without a check of the certificate.")] = False,
) -> None:
    """Print the state of a gateway on this machine, and exit with 0 if it is healthy, else with 1."""
    from umg_grpc.cli.health_command import check_health
    from umg_grpc.config.network_addresses import Address

    try:
        address = Address.parse(http)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--http") from None
    raise typer.Exit(check_health(address, ready=ready, tls=tls))


@app.command(rich_help_panel=Heading.START)
def reload(data: DataFlag = DATA_FOLDER) -> None:
    """Make the running gateways of a data directory read their configs again, and print the changes in each process."""
    from umg_grpc.process.reload_sockets import reload_all

    raise typer.Exit(reload_all(data))


@app.command(rich_help_panel=Heading.START)
@prints_table
def check(
    config: Annotated[
        Path | None, typer.Argument(help="YAML file. Default: the providers whose keys are in the environment.")
    ] = None,
    *,
    live: Annotated[
        bool, typer.Option("--live", help="Also call each provider and guard, and explain failures.")
    ] = False,
    form: Form,
    data: DataFlag = DATA_FOLDER,
) -> None:
    """Check a config: print its errors by line, or else the number of its channels and models."""
    if form is not Form.TABLE and not live:
        raise typer.BadParameter("it goes with --live", param_hint=f"--{form}")
    with nullcontext() if form.is_text else redirect_stdout(sys.stderr):
        found = _checked(config, data)
    if live:
        from umg_grpc.cli.live_check import run as run_live

        raise typer.Exit(run_live(found, form))


def _checked(path: Path | None, data: Path) -> "Config":
    """Return the config at a path (None: that of the environment), of which findings are printed. Raise typer.Exit."""
    from umg_grpc.base.errors import UmgError
    from umg_grpc.process.channel_file_checks import check_authorities, check_files
    from umg_grpc.process.config_loading import FROM_ENVIRONMENT, load
    from umg_grpc.process.exposure_checks import UNENCRYPTED_KEY, replica_warnings, unencrypted_host
    from umg_grpc.process.local_model_check import check_local_models
    from umg_grpc.process.proxy_report import proxy_lines
    from umg_grpc.process.retired_model_report import retired_models
    from umg_grpc.routing import PRICE_REMEDY, Router, uncalled_fallbacks, unpriced_models, unserved_models
    from umg_grpc.store import StoreError

    source = path or FROM_ENVIRONMENT
    found = load(source, data)
    try:
        check_local_models(found)
        check_authorities(os.environ)
        for channel in found.channels:
            check_files(channel)
        expired = _certificate_problem(found.tls) if found.tls is not None else ""
        if found.blobs.url is not None:
            from umg_grpc.store.blob_backend_selection import blob_place  # here, as the next: slow to import

            blob_place(found.blobs.url, found.blobs.endpoint, DATA_FOLDER)
    except (OSError, StoreError, UmgError) as error:
        print(f"{source}: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    if expired:
        print(f"{source}: warning: tls.certificate: {expired}")
    for warning in replica_warnings(found):
        print(f"{source}: warning: {warning}")
    for channel in found.channels:
        if (host := unencrypted_host(channel)) is not None:
            print(f"{source}: warning: {UNENCRYPTED_KEY} (channel {channel.name}, host {host})")
    for line in proxy_lines(found):
        print(f"{source}: proxy {line}")
    for line in retired_models(found, datetime.now(UTC).date()):
        print(f"{source}: warning: {line}")
    router = Router(found)
    for line in (*unserved_models(found), *uncalled_fallbacks(found.fallbacks, router)):
        print(f"{source}: warning: {line}")
    if unpriced := unpriced_models(router):
        refused = f"{_count(len(unpriced), 'model')} without a price, refused to keys with a budget"
        print(printable(f"{source}: warning: {refused}: {', '.join(unpriced)}; {PRICE_REMEDY}"))
    channels, models = _count(len(found.channels), "channel"), _count(len(router.models()), "model")
    patterns = {model.id for channel in found.channels for model in channel.models if "*" in model.id}
    matched = f", {_count(len(patterns), 'pattern')} of models" if patterns else ""
    print(f"{source}: fine; {channels}, {models}{matched}")
    return found


def _certificate_problem(files: "Tls") -> str:
    from umg_grpc.process.tls_certificates import load as load_certificate

    return load_certificate(files).problem


@app.command(rich_help_panel=Heading.MODELS)
@takes(AdminTarget)
@prints_table
def models(
    *,
    explain: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Say which channels a call for it asks, in order, and why.")
    ] = None,
    forget: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Forget what refusals of this model have taught the gateway.")
    ] = None,
    key: Annotated[str, typer.Option(help="With --explain: a call of this key (id, name or prefix).")] = "",
    face: Annotated[str, typer.Option(metavar="FORMAT", help="With --explain: a call in this format.")] = "",
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="The gateway that says how each channel is. Default: the config's metrics.address, or "
            f"{DEFAULT_HTTP}.",
        ),
    ] = None,
    form: Form,
    target: AdminTarget,
) -> None:
    """List the models of a config or a gateway, the channels that serve each, and how a running gateway finds them."""
    from umg_grpc.cli import model_list_command as commands
    from umg_grpc.cli import model_route_explanation as routes
    from umg_grpc.cli.breaker_metrics import states
    from umg_grpc.process.config_loading import load
    from umg_grpc.routing import OPERATION_PROTOCOLS

    faces = tuple(dict.fromkeys(name for names in OPERATION_PROTOCOLS.values() for name in names))
    if face and face not in faces:
        raise typer.BadParameter(f"expected one of {', '.join(faces)}", param_hint="--face")
    if (key or face) and explain is None:
        raise typer.BadParameter("it goes with --explain MODEL", param_hint="--key" if key else "--face")
    if target.gateway:
        flags = {"--explain": explain, "--forget": forget, "--http": http}
        if flag := next((name for name, value in flags.items() if value is not None), ""):
            raise typer.BadParameter("it reads a config: leave out --gateway and UMG_GATEWAY", param_hint=flag)
        run_async(commands.list_remote(target, form))
        return
    found, data = load(target.config, target.data), target.data
    if forget is not None:
        run_async(routes.forget(found, data, forget))
        return
    address = http or str(found.metrics.address or DEFAULT_HTTP)
    certificate = found.tls.certificate if found.tls is not None and address != str(found.metrics.address) else None
    states_of = states(address, found.metrics.key, certificate)
    if explain is None:
        run_async(commands.list_models(found, states_of, data, form))
    else:
        run_async(routes.explain(found, data, explain, face, key, states_of, form))


@app.command(rich_help_panel=Heading.CALLS)
def chat(
    *,
    grpc: GrpcFlag = DEFAULT_ADDRESS,
    key: KeyFlag = "",
    model: Annotated[str | None, typer.Option(help="Without it the first that the gateway lists.")] = None,
    system: Annotated[str, typer.Option(help="System prompt.")] = "",
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens of a response.")] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0, max=2, help="Randomness of the responses; without it that of the model.")
    ] = None,
    tls: TlsFlag = False,
    ca: CaFlag = None,
    config: ConfigFlag = None,
    data: DataFlag = DATA_FOLDER,
) -> None:
    """Talk to a model in the terminal. Ctrl-C stops a response, Ctrl-D ends."""
    from umg_grpc.cli import chat_command as talking

    target = grpc_target(grpc, key, tls=tls, ca=ca, data=data)

    async def talk() -> None:
        async with target.opened() as channel:
            await talking.chat(
                channel, target.key, model, system=system, max_tokens=max_tokens, temperature=temperature
            )

    run_async(talk())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def main() -> None:
    """Run the command in the program's arguments, and exit with its exit code."""
    for descriptor in range(3):  # a socket or a pipe would get the number of a closed descriptor
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    # before grpc is imported: keeps its lines out of our log; child processes do not use inherited channels
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    try:
        app(prog_name="umg")
    except BrokenPipeError:  # `umg models | head`
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123  keeps the interpreter's last flush from failing
        sys.exit(141)
