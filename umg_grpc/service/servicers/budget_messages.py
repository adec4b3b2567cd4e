"""Budgets of keys and accounts as messages, with their state in the present period."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from umg_grpc.access.budget_settings import Budget, budget_account
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.store.budget_accounts import NO_BALANCE, Balance, period_end, period_start
from umg_grpc.v1 import pb
from umg_grpc.wire.administration_api_json import PERIOD_NAMES, PERIOD_VALUES


def stored_period(period: "pb.BudgetPeriod.ValueType") -> str:
    """Return a period as the database has it. An unknown number becomes its own name, which `check_budget` refuses."""
    return PERIOD_NAMES.get(period, str(period)) if period != pb.BUDGET_PERIOD_UNSPECIFIED else ""


def budget_of(budget: pb.Budget) -> Budget:
    """Return a budget of a message as a setting."""
    return Budget(stored_period(budget.period), budget.micro_credits, budget.soft)


def budget_messages(budgets: Iterable[Budget]) -> list[pb.Budget]:
    """Return budgets of the settings as messages."""
    return [
        pb.Budget(period=PERIOD_VALUES[budget.period or "none"], micro_credits=budget.micro_credits, soft=budget.soft)
        for budget in budgets
    ]


def present_accounts(owner_id: str, budgets: Iterable[Budget], now: datetime) -> dict[str, int]:
    """Return account -> start of its present period, for `BudgetAccounts.balances`."""
    return {budget_account(owner_id, budget.period): period_start(budget.period, now) for budget in budgets}


def balance_messages(
    owner_id: str, budgets: Sequence[Budget], balances: Mapping[str, Balance], now: datetime
) -> list[pb.BudgetBalance]:
    """Return the state of each budget of a key or account. `balances`: of its accounts, those without costs absent."""
    found = list[pb.BudgetBalance]()
    for budget, message in zip(budgets, budget_messages(budgets), strict=True):
        balance = balances.get(budget_account(owner_id, budget.period), NO_BALANCE)
        end = period_end(budget.period, period_start(budget.period, now))
        found.append(
            pb.BudgetBalance(
                budget=message,
                spent_micro_credits=balance.spent,
                reserved_micro_credits=balance.held,
                end_time=timestamp(end),
            )
        )
    return found
