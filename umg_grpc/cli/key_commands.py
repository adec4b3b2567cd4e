"""Commands of `umg keys` and their flags. The docstrings of the command functions are the help texts that users see."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

import typer

from umg_grpc.base.time_units import UNIT_SECONDS
from umg_grpc.cli.account_flags import NO_RESTRICTION, NO_VALUE, SoftBudgetsFlag, budgets_of, tags_of
from umg_grpc.cli.command_headings import CommandsByHeading
from umg_grpc.cli.command_runner import run_async
from umg_grpc.cli.common_flags import (
    DATA_FOLDER,
    AdminTarget,
    ConfigFlag,
    DataFlag,
    names,
    prints_table,
    takes,
    time_of,
)
from umg_grpc.cli.text_tables import Form

app = typer.Typer(
    cls=CommandsByHeading,
    no_args_is_help=True,
    help="Issue, list, change, rotate and revoke the keys with which callers authenticate.",
)

Reference = Annotated[str, typer.Argument(help="Id, name or prefix.")]


@app.command("create")
@takes(AdminTarget)
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
        str | None, typer.Option(metavar="NAME,..", help="Operations it may use, e.g. generate,embed; all by default.")
    ] = None,
    admin: Annotated[bool, typer.Option("--admin", help="Its holder may manage keys: `AdminService`.")] = False,
    owner: Annotated[str, typer.Option(help="Person or team that it belongs to.")] = "",
    tag: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="For people; may be repeated.")] = None,
    rpm: Annotated[int | None, typer.Option(min=1, help="Most requests a minute.")] = None,
    tpm: Annotated[int | None, typer.Option(min=1, help="Most tokens a minute, input and output together.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Most requests in flight.")] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            "--budget",
            "--quota",
            metavar="CREDITS[/PERIOD]",
            help="Most credits to spend, e.g. 12.50, see --budget-period; or 100/month; may be repeated.",
        ),
    ] = None,
    soft_budget: SoftBudgetsFlag = None,
    budget_period: Annotated[
        str, typer.Option(metavar="PERIOD", help="The budget begins anew each day or month, in UTC; or never: none.")
    ] = NO_VALUE,
    project: Annotated[str, typer.Option(help="Id or name of its project.")] = "",
    user: Annotated[str, typer.Option(help="Id or e-mail address of its owner: a person or a service account.")] = "",
    expires: Annotated[str | None, typer.Option(metavar="ISO", help="When it ends, e.g. 2030-01-31T12:00Z.")] = None,
    target: AdminTarget,
) -> None:
    """Issue a key. It is shown once, as the last line."""
    from umg_grpc.cli import key_command_actions as commands

    period = _period(budget_period)
    budgets = _budget_fields(budget, soft_budget, None if period == NO_VALUE else period)
    if period != NO_VALUE and budgets.get("budget_micro_credits") is None:
        raise typer.BadParameter("it goes with --budget CREDITS", param_hint="--budget-period")
    fields = {
        "name": name,
        "model_patterns": _patterns(models, "model", "--models"),
        "channels": _patterns(channels, "channel", "--channels"),
        "operations": _patterns(operations, "operation", "--operations"),
        "administrator": admin,
        "requests_per_minute": rpm,
        "tokens_per_minute": tpm,
        "concurrent_requests": concurrency,
        "expire_time": time_of(expires, "--expires") if expires is not None else None,
        "show_route": show_route,
        "owner": owner,
        "tags": tags_of(tag) or {},
        "project_id": project,
        "user_id": user,
        **budgets,
    }
    run_async(commands.create(target, fields))


@app.command("update")
@takes(AdminTarget)
def update_key(
    key: Reference,
    *,
    name: Annotated[str | None, typer.Option(help="New name.")] = None,
    models: Annotated[str | None, typer.Option(metavar="PATTERN,..", help="Models it may use; `*`: all.")] = None,
    channels: Annotated[str | None, typer.Option(metavar="NAME,..", help="Channels it may use; `*`: all.")] = None,
    show_route: Annotated[bool | None, typer.Option("--show-route/--hide-route", help="`x-umg-route`.")] = None,
    operations: Annotated[str | None, typer.Option(metavar="NAME,..", help="Operations it may use; `*`: all.")] = None,
    admin: Annotated[bool | None, typer.Option("--admin/--no-admin", help="Whether it may manage keys.")] = None,
    owner: Annotated[str | None, typer.Option(help="Person or team that it belongs to; empty: nobody.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Set a tag, others stay; NAME= removes it.")
    ] = None,
    rpm: Annotated[str | None, typer.Option(metavar="N", help="Most requests a minute, or none.")] = None,
    tpm: Annotated[str | None, typer.Option(metavar="N", help="Most tokens a minute, or none.")] = None,
    concurrency: Annotated[str | None, typer.Option(metavar="N", help="Most requests in flight, or none.")] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option("--budget", "--quota", metavar="CREDITS[/PERIOD]", help="Most credits to spend; or none."),
    ] = None,
    soft_budget: SoftBudgetsFlag = None,
    budget_period: Annotated[str | None, typer.Option(metavar="PERIOD", help="day, month or none.")] = None,
    project: Annotated[str | None, typer.Option(help="Its project, which can be set once.")] = None,
    user: Annotated[str | None, typer.Option(help="Its owner; empty: nobody.")] = None,
    expires: Annotated[str | None, typer.Option(metavar="ISO", help="When it ends, or none.")] = None,
    target: AdminTarget,
) -> None:
    """Change settings of a key; those without a flag stay. Servers use them within seconds."""
    from umg_grpc.cli import key_command_actions as commands

    limits = {"requests_per_minute": ("--rpm", rpm), "tokens_per_minute": ("--tpm", tpm)}
    limits["concurrent_requests"] = ("--concurrency", concurrency)
    patterns = {"model_patterns": ("model", "--models", models), "channels": ("channel", "--channels", channels)}
    patterns["operations"] = ("operation", "--operations", operations)
    given = {"name": name, "administrator": admin, "show_route": show_route, "owner": owner}
    given |= {"project_id": project, "user_id": user}
    fields: dict[str, object] = {field: value for field, value in given.items() if value is not None}
    for field, (noun, flag, text) in patterns.items():
        if text is not None:
            fields[field] = [] if text.strip() == NO_RESTRICTION else _patterns(text, noun, flag)
    for field, (flag, text) in limits.items():
        if text is not None:
            fields[field] = None if text == NO_VALUE else _limit(text, flag)
    fields |= _budget_fields(budget, soft_budget, None if budget_period is None else _period(budget_period))
    if expires is not None:
        fields["expire_time"] = None if expires == NO_VALUE else time_of(expires, "--expires")
    tags = tags_of(tag) or {}
    if not fields and not tags:
        raise typer.BadParameter("name at least one setting to change, such as --rpm 60; see --help")
    run_async(commands.update(target, key, fields, tags))


@app.command("list")
@takes(AdminTarget)
@prints_table
def list_keys(*, form: Form, target: AdminTarget) -> None:
    """List all keys with their limits and the use of their budgets, without their secrets."""
    from umg_grpc.cli import key_command_actions as commands

    run_async(commands.list_all(target, form))


@app.command("show")
@takes(AdminTarget)
@prints_table
def show_key(key: Reference, *, form: Form, target: AdminTarget) -> None:
    """Show one key, without its secret."""
    from umg_grpc.cli import key_command_actions as commands

    run_async(commands.show(target, key, form))


@app.command("webhook-secret")
def show_webhook_secret(key: Reference, *, config: ConfigFlag = None, data: DataFlag = DATA_FOLDER) -> None:
    """Print the secret with which its holder verifies the notifications of video tasks."""
    from umg_grpc.cli import key_command_actions as commands

    run_async(commands.show_webhook_secret(AdminTarget(config, data, "", None), key))


@app.command("rotate")
@takes(AdminTarget)
def rotate_key(
    key: Reference,
    *,
    overlap: Annotated[
        str, typer.Option(metavar="TIME", help="How long the former secret stays valid: 24h, 30m, 0; at most 30d.")
    ] = "24h",
    target: AdminTarget,
) -> None:
    """Give a key a new secret, with all its settings. It is shown once, as the last line."""
    from umg_grpc.cli import key_command_actions as commands

    run_async(commands.rotate(target, key, _span(overlap)))


@app.command("revoke")
@takes(AdminTarget)
def revoke_key(key: Reference, *, target: AdminTarget) -> None:
    """End a key. Servers refuse it within seconds."""
    from umg_grpc.cli import key_command_actions as commands

    run_async(commands.revoke(target, key))


def _patterns(text: str | None, noun: str, flag: str) -> list[str]:
    """Split the value of a comma-separated flag into patterns; empty if the flag is absent (None)."""
    patterns = names(text or "")
    if text is not None and not patterns:
        raise typer.BadParameter(
            f"name at least one pattern; without the flag every {noun} is allowed", param_hint=flag
        )
    return patterns


def _limit(text: str, flag: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,9}", text):
        raise typer.BadParameter(f"expected a whole number from 1 on, or {NO_VALUE}", param_hint=flag)
    return int(text)


def _budget(text: str) -> int:
    """Parse the value of `--budget`, credits with up to 6 decimals. Return micro-credits. Raise typer.BadParameter."""
    from umg_grpc.knowledge.price_texts import micro_credits_of

    if (micro_credits := micro_credits_of(text)) is None:
        message = "expected a number of credits with at most 6 decimals, e.g. 12.50"
        raise typer.BadParameter(message, param_hint="--budget")
    return micro_credits


def _budget_fields(texts: Sequence[str] | None, soft: Sequence[str] | None, period: str | None) -> dict[str, object]:
    """Return the settings of the flags of budgets that are given. The key's own budget is the one without a period of
    its own, else the first: another amount replaces it and keeps its spent part.
    """
    given = [*(texts or ())]
    plain = [text for text in given if "/" not in text]
    if len(plain) > 1:
        raise typer.BadParameter("name a period for all but one: --budget 100/month", param_hint="--budget")
    own = next(iter(plain or given), None)
    fields: dict[str, object] = {} if period is None else {"budget_period": period}
    if own is not None and "/" in own:
        if period is not None:
            raise typer.BadParameter("it goes with --budget CREDITS", param_hint="--budget-period")
        listed = (budgets_of([own], None) or [])[0]
        fields |= {"budget_micro_credits": listed["micro_credits"], "budget_period": listed["period"]}
    elif own is not None:
        fields["budget_micro_credits"] = None if own == NO_VALUE else _budget(own)
    if own == NO_VALUE or soft or len(plain) < len(given):
        place = given.index(own) if own is not None else 0
        fields["budgets"] = budgets_of(given[:place] + given[place + 1 :], soft) or []
    return fields


def _period(text: str) -> str:
    from umg_grpc.wire.administration_api_json import PERIOD_VALUES

    if text not in PERIOD_VALUES:
        raise typer.BadParameter(f"expected one of {', '.join(PERIOD_VALUES)}", param_hint="--budget-period")
    return text


def _span(text: str) -> timedelta:
    match = re.fullmatch(r"([0-9]{1,8})([smhd]?)", text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is no time, such as 24h, 30m or 0", param_hint="--overlap")
    return timedelta(seconds=int(match[1]) * UNIT_SECONDS[match[2]])
