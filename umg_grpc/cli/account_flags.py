"""Flags that the commands of keys, organisations, projects and users share, and parsers of their values."""

from collections.abc import Sequence
from typing import Annotated

import typer

from umg_grpc.cli.common_flags import names

NO_VALUE = "none"
"""Value of a flag that removes a limit or all budgets."""
NO_RESTRICTION = "*"
"""Value of a flag that removes a restriction."""

ModelsFlag = Annotated[str | None, typer.Option("--models", metavar="PATTERN,..", help="Models allowed; `*`: all.")]
ChannelsFlag = Annotated[str | None, typer.Option("--channels", metavar="NAME,..", help="Channels allowed; `*`: all.")]
OperationsFlag = Annotated[
    str | None, typer.Option("--operations", metavar="NAME,..", help="Operations allowed; `*`: all.")
]
RpmFlag = Annotated[str | None, typer.Option("--rpm", metavar="N", help="Most requests a minute, or none.")]
TpmFlag = Annotated[str | None, typer.Option("--tpm", metavar="N", help="Most tokens a minute, or none.")]
ConcurrencyFlag = Annotated[str | None, typer.Option("--concurrency", metavar="N", help="Most in flight, or none.")]
BudgetsFlag = Annotated[
    list[str] | None,
    typer.Option("--budget", metavar="CREDITS[/PERIOD]", help="100/month, 5/day or 100; may be repeated; or none."),
]
SoftBudgetsFlag = Annotated[
    list[str] | None,
    typer.Option("--soft-budget", metavar="CREDITS[/PERIOD]", help="Budget that admits calls beyond it."),
]
TagsFlag = Annotated[list[str] | None, typer.Option("--tag", metavar="NAME=VALUE", help="May be repeated.")]


def patterns_of(text: str | None) -> list[str] | None:
    """Return the patterns in the value of a flag; empty for `*`, None for an absent flag."""
    if text is None:
        return None
    return [] if text.strip() == NO_RESTRICTION else names(text)


def limit_of(text: str | None, flag: str) -> tuple[bool, int | None]:
    """Return whether a flag is given, and its limit; None for `none`. Raise typer.BadParameter."""
    if text is None:
        return False, None
    if text == NO_VALUE:
        return True, None
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**10):
        raise typer.BadParameter(f"expected a whole number from 1 on, or {NO_VALUE}", param_hint=flag)
    return True, int(text)


def budgets_of(hard: Sequence[str] | None, soft: Sequence[str] | None) -> list[dict[str, object]] | None:
    """Return the budgets of the flags as in JSON; None without a flag. Raise typer.BadParameter."""
    if not hard and not soft:
        return None
    given = [(text, False) for text in hard or ()] + [(text, True) for text in soft or ()]
    return [_budget(text, soft=is_soft) for text, is_soft in given if text != NO_VALUE]


def _budget(text: str, *, soft: bool) -> dict[str, object]:
    from umg_grpc.knowledge.price_texts import micro_credits_of
    from umg_grpc.wire.administration_api_json import PERIOD_VALUES

    flag = "--soft-budget" if soft else "--budget"
    amount, _, period = text.partition("/")
    if (micro_credits := micro_credits_of(amount)) is None:
        message = "expected a number of credits with at most 6 decimals, e.g. 12.50 or 100/month"
        raise typer.BadParameter(message, param_hint=flag)
    if (period or NO_VALUE) not in PERIOD_VALUES:
        raise typer.BadParameter(f"expected a period of {', '.join(PERIOD_VALUES)}", param_hint=flag)
    return {"micro_credits": micro_credits, "period": period or NO_VALUE, "soft": soft}


def tags_of(texts: Sequence[str] | None) -> dict[str, str] | None:
    """Return the tags of a flag; None without one. Raise typer.BadParameter."""
    if not texts:
        return None
    found = dict[str, str]()
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"{text!r} is no NAME=VALUE, such as team=search", param_hint="--tag")
        found[name] = value
    return found
