"""Flags that several commands share, and parsers of their values."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated

import typer

from umg_grpc.base.time_units import UNIT_SECONDS
from umg_grpc.cli.text_tables import Form

ConfigFlag = Annotated[Path | None, typer.Option("--config", help="YAML file; without it the built-in config.")]
DataFlag = Annotated[Path, typer.Option("--data", help="Folder of the database and the bootstrap key.")]
GatewayFlag = Annotated[
    str,
    typer.Option(
        "--gateway",
        metavar="URL",
        envvar="UMG_GATEWAY",
        help="HTTP face of a gateway to use instead of the database; the key of an administrator is in UMG_ADMIN_KEY.",
    ),
]
KeyFileFlag = Annotated[
    Path | None,
    typer.Option("--api-key-file", metavar="FILE", help="With --gateway: the key, instead of UMG_ADMIN_KEY."),
]
DATA_FOLDER = Path(".umg")
SPAN_TEXT = re.compile(r"([0-9]{1,5})([smhd])")


@dataclass(frozen=True)
class AdminTarget:
    """Target of an administration command: the database of a config or, if `gateway` is set, a running gateway."""

    config: ConfigFlag = None
    data: DataFlag = DATA_FOLDER
    gateway: GatewayFlag = ""
    key_file: KeyFileFlag = None


def table_form(
    *,
    wide: Annotated[bool, typer.Option("--wide", help="All columns, whatever the width of the terminal.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON array with an object for each row.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="All columns as CSV.")] = False,
) -> Form:
    """Return the form that the flags of a command with a table select. Raise BadParameter for more than one of them."""
    given = [form for form, flag in ((Form.WIDE, wide), (Form.JSON, as_json), (Form.CSV, as_csv)) if flag]
    if len(given) > 1:
        raise typer.BadParameter("it excludes the others of --wide, --json and --csv", param_hint=f"--{given[1]}")
    return given[0] if given else Form.TABLE


def takes(
    target: Callable[..., object], parameter: str = "target"
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for commands with a parameter `target`, or another one. Typer sees the parameters of the
    function or class `target` in its place, and the command gets the object that `target` returns for their values.
    """
    flags = {name: flag.replace(kind=Parameter.KEYWORD_ONLY) for name, flag in signature(target).parameters.items()}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**values: object) -> None:
            made = target(**{name: values.pop(name) for name in flags})
            command(**{parameter: made}, **values)

        declared = signature(command)
        parameters = [
            shown
            for name, own in declared.parameters.items()
            for shown in (flags.values() if name == parameter else (own,))
        ]
        run.__signature__ = declared.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


prints_table = takes(table_form, "form")
"""Decorator for commands that print a table: they have its flags, and a parameter `form`."""


def time_of(text: str, flag: str) -> datetime:
    """Parse an ISO 8601 time, in UTC by default. Raise typer.BadParameter for the flag if it is invalid."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        message = f"{text!r} is no ISO 8601 time, such as 2030-01-31T12:00Z"
        raise typer.BadParameter(message, param_hint=flag) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def time_or_age(text: str, flag: str) -> datetime:
    """Parse an ISO 8601 time, or a span before now (`12h`). Raise typer.BadParameter for the flag if it is invalid."""
    if match := SPAN_TEXT.fullmatch(text):
        return datetime.now(UTC) - timedelta(seconds=int(match[1]) * UNIT_SECONDS[match[2]])
    return time_of(text, flag)


def seconds_of(text: str, flag: str) -> int:
    """Parse a span of time (`30m`) to seconds. Raise typer.BadParameter for the flag if it is invalid."""
    if not (match := SPAN_TEXT.fullmatch(text)):
        raise typer.BadParameter(f"{text!r} is no span of time, such as 90s, 30m, 12h or 7d", param_hint=flag)
    return int(match[1]) * UNIT_SECONDS[match[2]]


def names(text: str) -> list[str]:
    """Split the value of a comma-separated flag into names."""
    return [name.strip() for name in text.split(",") if name.strip()]
