"""Budgets as settings of keys and accounts, and the budgets that a call is charged to."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

MAX_BUDGET_MICRO_CREDITS = 10**18
BUDGET_PERIODS = ("", "day", "month")
"""Periods of budgets as they are stored; "" for a budget that is spent once."""
_PERIOD_SUFFIXES = {"": "total"}


class Budget(NamedTuple):
    """Budget in a list of budgets, as `umg.v1.Budget`. The database stores it as a JSON array of these fields."""

    period: str
    """`day` or `month` in UTC; "" for a budget that is spent once."""
    micro_credits: int
    soft: bool = False
    """Whether calls are admitted beyond it."""


class ChargedBudget(NamedTuple):
    """Budget that the calls of a key are charged to: the key's own, or that of its project or organisation."""

    account: str
    """Account of the budget in `budget_accounts`, without the period's start."""
    owner: str
    """Name of the budget's owner in error messages."""
    budget: Budget


def budgets_of(rows: Iterable[Sequence[Any]] | None) -> tuple[Budget, ...]:
    """Return the budgets in a column of the database."""
    return tuple(Budget(*row) for row in rows or ())


def budget_account(owner_id: str, period: str) -> str:
    """Return the account in `budget_accounts` of the budgets of one owner with the same period."""
    return f"{owner_id}/{_PERIOD_SUFFIXES.get(period, period)}"


def charged_budgets(owner_id: str, owner: str, budgets: Iterable[Budget]) -> list[ChargedBudget]:
    """Return the budgets of one owner with their accounts. The hard and the soft budget of a period share an account,
    which is charged once: the hard one stands for both.
    """
    found = dict[str, ChargedBudget]()
    for budget in sorted(budgets, key=lambda budget: budget.soft):
        account = budget_account(owner_id, budget.period)
        found.setdefault(account, ChargedBudget(account, owner, budget))
    return [*found.values()]


def check_budgets(budgets: Collection[Budget]) -> None:
    """Raise UmgError(INVALID_FIELD) for a budget that is malformed, or has the period and softness of another one."""
    seen = set[tuple[str, bool]]()
    for budget in budgets:
        check_budget("budgets", budget.micro_credits, budget.period)
        if (budget.period, budget.soft) in seen:
            kind = "soft" if budget.soft else "hard"
            raise _invalid("budgets", f"at most one {kind} budget for each period; `{budget.period or 'none'}` has two")
        seen.add((budget.period, budget.soft))


def check_budget(field: str, micro_credits: int | None, period: str, period_field: str = "") -> None:
    """Raise UmgError(INVALID_FIELD) for an amount outside its range or an unknown period. `field`, `period_field`:
    names of the settings that the error names; one name for both if `period_field` is "".
    """
    if micro_credits is not None and not 0 <= micro_credits <= MAX_BUDGET_MICRO_CREDITS:
        message = f"a budget is 0 to {MAX_BUDGET_MICRO_CREDITS} micro-credits; leave it out for no budget"
        raise _invalid(field, message)
    if period not in BUDGET_PERIODS:
        raise _invalid(period_field or field, "the period of a budget is `day`, `month` or `none`")


def _invalid(field: str, message: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=field)
