"""Keys as `umg keys` prints them: the table of several keys, and all settings of one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from umg_grpc.base.micro_credits import credits_text
from umg_grpc.cli.text_tables import Column, Fit, Form, print_fields, print_table
from umg_grpc.cli.time_texts import time_text
from umg_grpc.v1 import pb
from umg_grpc.wire.administration_api_json import OPERATION_NAMES, PERIOD_NAMES
from umg_grpc.wire.protobuf_json import to_json

TITLE_WIDTH = 13
PERIOD_TEXTS = {period: f"a {name}" if period else "in all" for period, name in PERIOD_NAMES.items()}


def print_keys(keys: Sequence[pb.Key], form: Form) -> None:
    """Print keys as a table in a form."""
    rows = ([column.cell(key) for column in KEY_COLUMNS] for key in keys)
    print_table([column.column for column in KEY_COLUMNS], rows, form, map(to_json, keys))


def print_key(key: pb.Key, form: Form = Form.TABLE) -> None:
    """Print all settings of one key in a form, one below the other in a text."""
    if not form.is_text:
        print_keys([key], form)
        return
    texts = ((title, text(key)) for title, text in SETTING_TEXTS.items())
    print_fields([(title, text) for title, text in texts if text], TITLE_WIDTH, form)


def _operations(key: pb.Key) -> str:
    operations = [OPERATION_NAMES[operation] for operation in key.settings.operations] or ["all"]
    return ", ".join([*operations, "admin"] if key.settings.administrator else operations)


def _closest(key: pb.Key) -> pb.BudgetBalance | None:
    """Return the state of the budget of which the largest share is used; None for a key without a budget. Soft budgets
    refuse no calls.
    """
    balances = [balance for balance in key.balances if not balance.budget.soft]
    settings = key.settings
    if settings.HasField("budget_micro_credits"):
        budget = pb.Budget(period=settings.budget_period, micro_credits=settings.budget_micro_credits)
        amounts = {name: getattr(key, name) for name in ("spent_micro_credits", "reserved_micro_credits")}
        balances.insert(0, pb.BudgetBalance(budget=budget, **amounts))
    return max(balances, key=_share, default=None)


def _left(balance: pb.BudgetBalance) -> int:
    """Return the micro-credits that are neither spent nor held for calls in flight."""
    return max(0, balance.budget.micro_credits - balance.spent_micro_credits - balance.reserved_micro_credits)


def _share(balance: pb.BudgetBalance) -> float:
    budget = balance.budget.micro_credits
    return (budget - _left(balance)) / budget if budget else 1.0


def _of_closest(text: Callable[[pb.BudgetBalance], str]) -> Callable[[pb.Key], str]:
    def cell(key: pb.Key) -> str:
        balance = _closest(key)
        return "" if balance is None else text(balance)

    return cell


def _further_budgets(key: pb.Key) -> str:
    return ", ".join(
        f"{credits_text(each.budget.micro_credits)} credits {PERIOD_TEXTS[each.budget.period]}"
        f" ({'soft, ' if each.budget.soft else ''}{_share(each):.0%} used)"
        for each in key.balances
    )


def _budget(settings: pb.KeySettings) -> str:
    if not settings.HasField("budget_micro_credits"):
        return "no limit"
    amount = f"{credits_text(settings.budget_micro_credits)} credits"
    return f"{amount} a {PERIOD_NAMES[settings.budget_period]}" if settings.budget_period else amount


def _former(key: pb.Key) -> str:
    until = time_text(key.previous_expire_time)
    return f"{key.previous_prefix}…, valid until {until}" if key.previous_prefix else ""


def _state(key: pb.Key) -> str:
    if key.HasField("revoke_time"):
        return "revoked"
    expires = key.settings.expire_time.ToDatetime(UTC) if key.settings.HasField("expire_time") else None
    return "expired" if expires is not None and expires <= datetime.now(UTC) else "live"


def _tags(key: pb.Key) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(key.settings.tags.items()))


SETTING_TEXTS: Mapping[str, Callable[[pb.Key], str]] = {
    "id": lambda key: key.key_id,
    "name": lambda key: key.settings.name,
    "key": lambda key: f"{key.prefix}…",
    "state": _state,
    "models": lambda key: ", ".join(key.settings.model_patterns) or "all",
    "operations": _operations,
    "channels": lambda key: ", ".join(key.settings.channels) or "all",
    "rpm": lambda key: str(key.settings.requests_per_minute or "no limit"),
    "tpm": lambda key: str(key.settings.tokens_per_minute or "no limit"),
    "concurrency": lambda key: str(key.settings.concurrent_requests or "no limit"),
    "budget": lambda key: _budget(key.settings),
    "spent": lambda key: (
        f"{credits_text(key.spent_micro_credits)} credits" if key.settings.HasField("budget_micro_credits") else ""
    ),
    "held": lambda key: f"{credits_text(key.reserved_micro_credits)} credits" if key.reserved_micro_credits else "",
    "budgets": _further_budgets,
    "left": _of_closest(lambda balance: f"{credits_text(_left(balance))} credits, {_share(balance):.0%} used"),
    "project": lambda key: key.settings.project_id,
    "user": lambda key: key.settings.user_id,
    "route": lambda key: "shown" if key.settings.show_route else "hidden",
    "owner": lambda key: key.settings.owner or "none",
    "tags": lambda key: _tags(key) or "none",
    "created": lambda key: time_text(key.create_time),
    "last used": lambda key: time_text(key.last_use_time) if key.HasField("last_use_time") else "never",
    "expires": lambda key: time_text(key.settings.expire_time) if key.settings.HasField("expire_time") else "never",
    "revoked": lambda key: time_text(key.revoke_time) if key.HasField("revoke_time") else "",
    "former key": _former,
}
"""Settings of a key as texts, by their titles; "" for one that the key does not have."""


@dataclass(frozen=True)
class KeyColumn:
    """Column of the table of keys, and its cell for a key; "" for a setting that the key does not have."""

    column: Column
    cell: Callable[[pb.Key], str]


def _setting(title: str, importance: int, fit: Fit = Fit.WHOLE) -> KeyColumn:
    return KeyColumn(Column(title, importance, fit), SETTING_TEXTS[title])


def _number(title: str, importance: int, cell: Callable[[pb.Key], str]) -> KeyColumn:
    return KeyColumn(Column(title, importance, is_number=True), cell)


KEY_COLUMNS = (
    _setting("id", 1),
    _setting("name", 1),
    _setting("state", 3),
    _number("used", 2, _of_closest(lambda balance: f"{_share(balance):.0%}")),
    _number("left", 2, _of_closest(lambda balance: credits_text(_left(balance)))),
    _number("spent", 4, _of_closest(lambda balance: credits_text(balance.spent_micro_credits))),
    _number("budget", 4, _of_closest(lambda balance: credits_text(balance.budget.micro_credits))),
    KeyColumn(Column("period", 5), _of_closest(lambda balance: PERIOD_NAMES[balance.budget.period])),
    _setting("expires", 5),
    _number("rpm", 5, lambda key: str(key.settings.requests_per_minute or "")),
    _number("tpm", 5, lambda key: str(key.settings.tokens_per_minute or "")),
    _number("concurrency", 5, lambda key: str(key.settings.concurrent_requests or "")),
    _setting("owner", 6),
    _setting("last used", 6),
    _setting("key", 6),
    _setting("models", 7, Fit.LISTED),
    _setting("operations", 7, Fit.LISTED),
    _setting("channels", 8, Fit.LISTED),
    _setting("route", 9),
    KeyColumn(Column("tags", 8, Fit.LISTED), _tags),
    _setting("created", 9),
)
"""Table of `umg keys list`: the use of budgets beside the names, so that keys near the end of theirs are noticed.
Of several budgets, the columns have the one of which the largest share is used.
"""
