"""Budgets of keys and projects as bars of spent, reserved and left."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from umg_grpc.v1 import pb
from umg_grpc.wire.administration_api_json import PERIOD_NAMES

WARN_PERCENT = 80
SECONDS_PER_DAY = 86_400
DAY_PERIOD, MONTH_PERIOD = (PERIOD_NAMES[each] for each in (pb.BUDGET_PERIOD_DAY, pb.BUDGET_PERIOD_MONTH))


@dataclass(frozen=True)
class BudgetMeter:
    """Budget in its present period."""

    period: str
    """`day`, `month`, or "" for a budget that is spent once."""
    is_soft: bool
    limit: int
    spent: int
    reserved: int
    ends: datetime | None
    """When it is used up at the rate of its period so far; None if it is not before the period ends."""
    daily: int = 0
    """Mean spend of a day of the present month; 0 for a budget of another period."""

    @property
    def left(self) -> int:
        """Rest of the budget, at least 0."""
        return max(0, self.limit - self.spent - self.reserved)

    @property
    def percent(self) -> int:
        """Spent and reserved part in percent."""
        used = self.spent + self.reserved
        return 100 if self.limit <= 0 else min(100, 100 * used // self.limit)

    @property
    def state(self) -> str:
        """Mark of the bar: `bad` when it is used up, `warn` from 80 % on."""
        return "bad" if self.left == 0 else "warn" if self.percent >= WARN_PERCENT else "good"


@dataclass(frozen=True)
class BudgetLevel:
    """Project or organisation above a key, whose budgets hold besides."""

    name: str
    """Its name, or its kind for people that may not see it."""
    path: str
    """Its page; "" for people that may not see it."""
    meters: Sequence[BudgetMeter]


def key_meters(key: pb.Key, now: datetime) -> list[BudgetMeter]:
    """Return the budgets of a key, the one of `budget_micro_credits` first."""
    found = list[BudgetMeter]()
    settings = key.settings
    if settings.HasField("budget_micro_credits"):
        budget = pb.Budget(period=settings.budget_period, micro_credits=settings.budget_micro_credits)
        found.append(_meter(budget, key.spent_micro_credits, key.reserved_micro_credits, now))
    return found + balance_meters(key.balances, now)


def balance_meters(balances: Iterable[pb.BudgetBalance], now: datetime) -> list[BudgetMeter]:
    """Return budgets with their balances."""
    return [_meter(each.budget, each.spent_micro_credits, each.reserved_micro_credits, now) for each in balances]


def least_left(meters: Iterable[BudgetMeter]) -> int | None:
    """Return the least rest of budgets that refuse calls; None without one."""
    return min((meter.left for meter in meters if not meter.is_soft), default=None)


def binding_level(own: Sequence[BudgetMeter], above: Sequence[BudgetLevel]) -> tuple[str, int] | None:
    """Return the name of the level with the least left, and this rest; None if the key itself has less."""
    least = [(rest, level.name) for level in above if (rest := least_left(level.meters)) is not None]
    rest, name = min(least, default=(0, ""))
    own_rest = least_left(own)
    return (name, rest) if name and (own_rest is None or rest < own_rest) else None


def period_span(period: str, now: datetime) -> tuple[datetime, datetime]:
    """Return the begin and the end of the present month, or of the present day for any other period."""
    begin = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if period != MONTH_PERIOD:
        return begin, begin + timedelta(days=1)
    begin = begin.replace(day=1)
    return begin, (begin + timedelta(days=32)).replace(day=1)


def _meter(budget: pb.Budget, spent: int, reserved: int, now: datetime) -> BudgetMeter:
    period = PERIOD_NAMES.get(budget.period, "")
    begin, following = period_span(period, now)
    seconds = max(int((now - begin).total_seconds()), 1)
    daily = spent * SECONDS_PER_DAY // seconds if period == MONTH_PERIOD else 0
    end = None
    if period in (DAY_PERIOD, MONTH_PERIOD) and 0 < spent < budget.micro_credits:
        end = now + timedelta(seconds=(budget.micro_credits - spent) * seconds / spent)
    ends = end if end is not None and end < following else None
    return BudgetMeter(period, budget.soft, budget.micro_credits, spent, reserved, ends, daily)
