"""Commands of `umg` with their flags. The docstrings of the command functions are their help texts."""

import os
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from umg_grpc.access.key_fields import KeyFields
from umg_grpc.access.permissions import OPERATIONS
from umg_grpc.cli.config import load
from umg_grpc.config import Address
from umg_grpc.config.models import micro_credits_of
from umg_grpc.config.scalars import SECONDS
from umg_grpc.errors import UmgError
from umg_grpc.routing import PROTOCOLS, Router
from umg_grpc.wire.admin import PERIOD_VALUES

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="One service in front of every AI model provider.",
)  # fmt: skip
keys = typer.Typer(
    no_args_is_help=True, help="Issue, list, rotate and revoke the keys with which callers authenticate."
)
app.add_typer(keys, name="keys")
requests = typer.Typer(no_args_is_help=True, help="Look up the records of calls.")
app.add_typer(requests, name="requests")

ConfigFlag = Annotated[Path | None, typer.Option("--config", help="YAML file; without it the built-in config.")]
DataFlag = Annotated[Path, typer.Option("--data", help="Folder of the database and the bootstrap key.")]
DATA = Path(".umg")
HTTP = "127.0.0.1:8080"


@app.command()
def serve(
    *,
    config: ConfigFlag = None,
    http: Annotated[str, typer.Option(metavar="HOST:PORT", help="Port 0: any free one.")] = HTTP,
    grpc: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="With --faces http: the service to call.")
    ] = "127.0.0.1:50051",
    data: DataFlag = DATA,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes that share the ports.")] = 1,
    faces: Annotated[str, typer.Option(help="`http,grpc`, or one of them.")] = "http,grpc",
    replace_bootstrap_key: Annotated[
        bool, typer.Option("--replace-bootstrap-key", help="Replace the first key that the database has.")
    ] = False,
    metrics: Annotated[
        str | None, typer.Option(hidden=True)
    ] = None,  # passed to workers instead of the address in the config
) -> None:
    """Serve HTTP and gRPC until SIGTERM or Ctrl-C, which lets calls under way end first."""
    # imported here: no other command needs the servers, which are slow to import
    from umg_grpc.cli.run import run
    from umg_grpc.cli.serve import FACES, Options

    wanted = tuple(face for face in FACES if face in {name.strip() for name in faces.split(",")})
    if not wanted or {name.strip() for name in faces.split(",")} - set(FACES):
        raise typer.BadParameter("expected http,grpc or one of them", param_hint="--faces")
    try:
        listener = Address.parse(metrics) if metrics is not None else None
        options = Options(
            *(config, Address.parse(http), Address.parse(grpc), data, wanted, workers),
            metrics=listener,
            replace_bootstrap_key=replace_bootstrap_key,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    raise typer.Exit(run(options, load(config)))


@app.command()
def reload(data: DataFlag = DATA) -> None:
    """Make the running gateways of a data directory read their configs again, and print the changes in each process."""
    from umg_grpc.cli.reload import reload_all

    raise typer.Exit(reload_all(data))


@app.command()
def check(config: Annotated[Path, typer.Argument(help="YAML file.")]) -> None:
    """Check a config: print its errors by line, or else the number of its channels and models."""
    # imported here: the service is slow to import
    from umg_grpc.channel_factory import tls_context
    from umg_grpc.cli.serve import check_local_models
    from umg_grpc.tls import load as load_certificate

    found = load(config)
    try:
        check_local_models(found)
        for channel in found.channels:
            tls_context(channel)
        expired = load_certificate(found.tls).problem if found.tls is not None else ""
    except (OSError, UmgError) as error:
        print(f"{config}: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    if expired:
        print(f"{config}: warning: tls.certificate: {expired}")
    for notice in found.notices:
        print(f"{config}: {notice}")
    channels, models = _count(len(found.channels), "channel"), _count(len(Router(found).models()), "model")
    print(f"{config}: fine; {channels}, {models}")


@app.command()
def models(
    *,
    explain: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Say which channels a call for it asks, in order, and why.")
    ] = None,
    key: Annotated[str, typer.Option(help="With --explain: a call of this key (id, name or prefix).")] = "",
    face: Annotated[str, typer.Option(metavar="FORMAT", help="With --explain: a call in this format.")] = "",
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help=f"The gateway that says how each channel is. Default: the config's metrics.address, or {HTTP}.",
        ),
    ] = None,
    config: ConfigFlag = None,
    data: DataFlag = DATA,
) -> None:
    """List the models of a config, the channels that serve each, and how a running gateway finds them."""
    # imported here: serving needs no tables, which take megabytes
    from umg_grpc.cli import models as commands
    from umg_grpc.cli.channel_states import states

    faces = tuple(dict.fromkeys(name for names in PROTOCOLS.values() for name in names))
    if face and face not in faces:
        raise typer.BadParameter(f"expected one of {', '.join(faces)}", param_hint="--face")
    if (key or face) and explain is None:
        raise typer.BadParameter("it goes with --explain MODEL", param_hint="--key" if key else "--face")
    found = load(config)
    address = http or str(found.metrics.address or HTTP)
    certificate = found.tls.certificate if found.tls is not None and address != str(found.metrics.address) else None
    states_of = states(address, found.metrics.key, certificate)
    if explain is None:
        commands.list_models(found, states_of, data)
    else:
        uvloop.run(commands.explain(found, data, explain, face, key, states_of))


@keys.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="For people: whose key it is.")],
    *,
    models: Annotated[
        str | None, typer.Option(metavar="PATTERN,..", help="Models it may use; `*` stands for anything.")
    ] = None,
    channels: Annotated[
        str | None, typer.Option(metavar="NAME,..", help="Channels that may serve it; `*` stands for anything.")
    ] = None,
    show_route: Annotated[
        bool, typer.Option("--show-route", help="Tell its holder which channel served a call: `x-umg-route`.")
    ] = False,
    operations: Annotated[
        str | None, typer.Option(metavar="NAME,..", help=f"Operations it may use: some of {', '.join(OPERATIONS)}.")
    ] = None,
    admin: Annotated[bool, typer.Option("--admin", help="Its holder may manage keys: `AdminService`.")] = False,
    owner: Annotated[str, typer.Option(help="Person or team that it belongs to.")] = "",
    tag: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="For people; may be repeated.")] = None,
    rpm: Annotated[int | None, typer.Option(min=1, help="Most requests a minute.")] = None,
    tpm: Annotated[int | None, typer.Option(min=1, help="Most tokens a minute, input and output together.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Most requests in flight.")] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="CREDITS", help="Most credits to spend, e.g. 12.50; see --budget-period.")
    ] = None,
    budget_period: Annotated[
        str, typer.Option(metavar="PERIOD", help="The budget begins anew each day or month, in UTC; or never: none.")
    ] = "none",
    expires: Annotated[str | None, typer.Option(metavar="ISO", help="When it ends, e.g. 2030-01-31T12:00Z.")] = None,
    config: ConfigFlag = None,
    data: DataFlag = DATA,
) -> None:
    """Issue a key. It is shown once, as the last line."""
    from umg_grpc.cli import keys as commands

    fields: KeyFields = {
        "model_patterns": _patterns(models, "model", "--models"),
        "channels": _patterns(channels, "channel", "--channels"),
        "operations": _patterns(operations, "operation", "--operations"),
        "administrator": admin,
        "requests_per_minute": rpm,
        "tokens_per_minute": tpm,
        "concurrent_requests": concurrency,
        "budget_micro_credits": _budget(budget, budget_period),
        "budget_period": "" if budget_period == "none" else budget_period,
        "expire_time": _moment(expires) if expires is not None else None,
        "show_route": show_route,
        "owner": owner,
        "tags": dict(_tag(text) for text in tag or ()),
    }
    uvloop.run(commands.create(load(config), data, name, fields))


@keys.command("list")
def list_keys(config: ConfigFlag = None, data: DataFlag = DATA) -> None:
    """List all keys, without their secrets."""
    from umg_grpc.cli import keys as commands

    uvloop.run(commands.list_all(load(config), data))


@keys.command("show")
def show_key(
    key: Annotated[str, typer.Argument(help="Id, name or prefix.")], config: ConfigFlag = None, data: DataFlag = DATA
) -> None:
    """Show one key, without its secret."""
    from umg_grpc.cli import keys as commands

    uvloop.run(commands.show(load(config), data, key))


@keys.command("rotate")
def rotate_key(
    key: Annotated[str, typer.Argument(help="Id, name or prefix.")],
    *,
    overlap: Annotated[
        str, typer.Option(metavar="TIME", help="How long the former secret stays valid: 24h, 30m, 0; at most 30d.")
    ] = "24h",
    config: ConfigFlag = None,
    data: DataFlag = DATA,
) -> None:
    """Give a key a new secret, with all its settings. It is shown once, as the last line."""
    from umg_grpc.cli import keys as commands

    uvloop.run(commands.rotate(load(config), data, key, _span(overlap)))


@keys.command("revoke")
def revoke_key(
    key: Annotated[str, typer.Argument(help="Id, name or prefix.")], config: ConfigFlag = None, data: DataFlag = DATA
) -> None:
    """End a key. Servers refuse it within seconds."""
    from umg_grpc.cli import keys as commands

    uvloop.run(commands.revoke(load(config), data, key))


@app.command()
def usage(
    *,
    since: Annotated[
        str, typer.Option(metavar="TIME", help="Calls from this ISO time on, or of a span before now: 30d, 12h, 15m.")
    ] = "30d",
    by: Annotated[
        str, typer.Option(metavar="NAME,..", help="Groups: day, key, model, channel, operation.")
    ] = "day,key,model",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")] = False,
    config: ConfigFlag = None,
    data: DataFlag = DATA,
) -> None:
    """Print the calls, tokens and cost of the past, by day, key, model, channel or operation."""
    from umg_grpc.cli import usage as commands
    from umg_grpc.store.usage_records import DAY, DIMENSIONS, CallFilter

    groups = tuple(dict.fromkeys(name.strip() for name in by.split(",") if name.strip()))
    if set(groups) - {DAY, *DIMENSIONS}:
        raise typer.BadParameter(f"expected names of {', '.join((DAY, *DIMENSIONS))}", param_hint="--by")
    if as_json and as_csv:
        raise typer.BadParameter("select one of --json and --csv", param_hint="--csv")
    printed = commands.Format.JSON if as_json else commands.Format.CSV if as_csv else commands.Format.TABLE
    uvloop.run(commands.usage(load(config), data, groups, CallFilter(_since(since)), printed))


@requests.command("show")
def show_request(
    request_id: Annotated[str, typer.Argument(help="Request id of the call, from its `x-request-id`.")],
    config: ConfigFlag = None,
    data: DataFlag = DATA,
) -> None:
    """Print the record of a call: its key, model, channel, outcome, tokens and cost."""
    from umg_grpc.cli import usage as commands

    uvloop.run(commands.show_request(load(config), data, request_id))


@app.command()
def chat(
    *,
    grpc: Annotated[str, typer.Option(metavar="HOST:PORT", help="The gateway's gRPC address.")] = "127.0.0.1:50051",
    key: Annotated[str, typer.Option(envvar="UMG_API_KEY", help="Without it the bootstrap key in --data.")] = "",
    model: Annotated[str | None, typer.Option(help="Without it the first that the gateway lists.")] = None,
    system: Annotated[str, typer.Option(help="System prompt.")] = "",
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens of an answer.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0, max=2)] = None,
    tls: Annotated[bool, typer.Option("--tls", help="Connect with TLS.")] = False,
    ca: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Connect with TLS; the authorities to trust, in PEM.")
    ] = None,
    config: ConfigFlag = None,
    data: DataFlag = DATA,
) -> None:
    """Talk to a model in the terminal. Ctrl-C stops an answer, Ctrl-D ends."""
    from grpc import ssl_channel_credentials
    from grpc.aio import insecure_channel, secure_channel

    from umg_grpc.access.bootstrap import FILE
    from umg_grpc.cli import chat as talking

    kept = data / FILE
    if not key and not kept.is_file():
        raise typer.BadParameter(f"give one, or set UMG_API_KEY; there is no {kept} either", param_hint="--key")
    secret = key or kept.read_text().strip()
    if not (secret.isascii() and secret.isprintable()):
        raise typer.BadParameter("a key is printable ASCII", param_hint="--key")

    try:
        authorities = ca.read_bytes() if ca is not None else None
    except OSError as error:
        raise typer.BadParameter(f"{ca}: {error.strerror}", param_hint="--ca") from None
    secure = tls or ca is not None

    async def talk() -> None:
        credentials = ssl_channel_credentials(authorities) if secure else None
        async with insecure_channel(grpc) if credentials is None else secure_channel(grpc, credentials) as channel:
            await talking.chat(channel, secret, model, system=system, max_tokens=max_tokens, temperature=temperature)

    try:
        uvloop.run(talk())
    except UmgError as error:
        print(f"umg: {error.message}", file=sys.stderr)
        raise typer.Exit(1) from None


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _patterns(text: str | None, what: str, flag: str) -> list[str]:
    """Return the patterns of a comma-separated flag; empty if the flag is absent."""
    patterns = [pattern.strip() for pattern in (text or "").split(",") if pattern.strip()]
    if text is not None and not patterns:
        raise typer.BadParameter(
            f"name at least one pattern; without the flag every {what} is allowed", param_hint=flag
        )
    return patterns


def _since(text: str) -> datetime:
    if match := re.fullmatch(r"([0-9]{1,5})([smhd])", text):
        return datetime.now(UTC) - timedelta(seconds=int(match[1]) * SECONDS[match[2]])
    return _moment(text, "--since")


def _budget(text: str | None, period: str) -> int | None:
    """Return the micro-credits of `--budget`. Refuse an unknown period, and a period without a budget."""
    if period not in PERIOD_VALUES:
        raise typer.BadParameter(f"expected one of {', '.join(PERIOD_VALUES)}", param_hint="--budget-period")
    if text is None:
        if period != "none":
            raise typer.BadParameter("it goes with --budget CREDITS", param_hint="--budget-period")
        return None
    if (micro_credits := micro_credits_of(text)) is None:
        message = "expected a number of credits with at most 6 decimals, e.g. 12.50"
        raise typer.BadParameter(message, param_hint="--budget")
    return micro_credits


def _moment(text: str, flag: str = "--expires") -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        message = f"{text!r} is no ISO 8601 time, such as 2030-01-31T12:00Z"
        raise typer.BadParameter(message, param_hint=flag) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _tag(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{text!r} is no NAME=VALUE, such as team=search", param_hint="--tag")
    return name, value


def _span(text: str) -> timedelta:
    match = re.fullmatch(r"([0-9]{1,8})([smhd]?)", text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is no time, such as 24h, 30m or 0", param_hint="--overlap")
    return timedelta(seconds=int(match[1]) * SECONDS[match[2]])


def main() -> None:
    """Run the command line, and exit with its exit code."""
    for descriptor in range(3):  # a socket or a pipe would get the number of a closed descriptor
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    # before grpc is imported: keeps its lines out of our log; child processes do not use inherited channels
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    try:
        app()
    except BrokenPipeError:  # `umg models | head`
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123  keeps the interpreter's last flush from failing
        sys.exit(141)
