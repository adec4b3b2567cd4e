"""Budgets of API keys and accounts in a process, which leases parts of them from the database and reserves costs from
its part.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.access.budget_leases import VALID_SECONDS, BudgetOwner, Lease
from umg_grpc.access.budget_settings import ChargedBudget
from umg_grpc.access.caller_identity import Caller
from umg_grpc.access.limit_errors import BudgetAmounts, budget_exceeded
from umg_grpc.base.errors import UmgError
from umg_grpc.base.lazy_logger import LazyLogger
from umg_grpc.store.budget_accounts import WANTED_SECONDS, Demand, Grant, LeaseId, period_end, period_start
from umg_grpc.store.database_time import Clock
from umg_grpc.store.repeated_background_tasks import Background
from umg_grpc.v1 import pb

REFUSAL_SECONDS = 0.5
"""Time for which a refusal, or the failure of a request to the database, is repeated without another request."""
RETURN_PAUSES = (0.25, 0.5, 0.75)
"""Seconds between the requests of a call that waits for amounts that other processes return."""
WAIT_AGAIN_SECONDS = 5.0
"""Time after a wait in vain in which calls are refused without another one."""
STEP_SECONDS = 0.5
"""Time between two looks at the leases: rates, unused amounts, amounts that others want."""
CONFIRM_SECONDS = 15.0
BOOK_SECONDS = 60.0
"""Time between two searches for leases of lost processes."""
EXTEND_AGAIN_SECONDS = 5.0
ALONE_SECONDS = 5.0
"""Seconds after a failure or late response of the database in which calls do not wait for larger leases."""
PATIENCE_SECONDS = 1.0
"""Longest wait for a larger lease of a call that can do without."""

logger = LazyLogger(__name__)


class Reservation:
    """Amounts that are reserved for the cost of one call, one in each of the budgets that may refuse it. `end` replaces
    them by the actual cost; `hand_over` moves them to a video task, which is charged when it ends.
    """

    __slots__ = ("_amounts", "accounts", "is_bound")

    def __init__(self, accounts: Sequence[LeaseId], amounts: dict[Lease, int]) -> None:
        self.accounts = accounts
        """Accounts to which the call's usage record charges its cost, with the lease of this process on each. The
        record must be in the journal before `end` is called.
        """
        self._amounts = amounts
        self.is_bound = bool(amounts)
        """Whether the reserved amount bounds the cost: false with soft budgets alone."""

    @property
    def micro_credits(self) -> int:
        """Smallest reserved amount in micro-credits; 0 after the end."""
        return min(self._amounts.values(), default=0)

    @property
    def holds(self) -> list[tuple[LeaseId, int]]:
        """Accounts with the reserved amounts, 0 for a soft budget."""
        amounts = {lease.lease_id: amount for lease, amount in self._amounts.items()}
        return [(account, amounts.get(account, 0)) for account in self.accounts]

    def hand_over(self) -> None:
        """End the reservation without a charge, once `budget_accounts.hold` has moved its amounts to a video task."""
        for lease, amount in self.take().items():
            lease.end(amount, 0, moved=amount)

    def reduce(self, micro_credits: int) -> None:
        """Release the parts of the reserved amounts that exceed `micro_credits`; do nothing after the end."""
        for lease, amount in self._amounts.items():
            if amount > micro_credits:
                lease.release(amount - micro_credits)
                self._amounts[lease] = micro_credits

    def absorb(self, earlier: "Reservation") -> None:
        """Take over the amounts of an earlier reservation of the same call, which ends. An amount in another lease,
        that of an earlier budget period, is released there: the cost of a call is charged to one period.
        """
        for lease, amount in earlier.take().items():
            if lease in self._amounts:
                lease.merge()
                self._amounts[lease] += amount
            else:
                lease.end(amount, 0)

    def take(self) -> dict[Lease, int]:
        """End the reservation, and return its amounts, which the taker has to end."""
        amounts, self._amounts = self._amounts, {}
        return amounts

    def end(self, micro_credits: int) -> None:
        """Charge the actual cost of the call (0: nothing) and release the rest. Further calls have no effect."""
        for lease, amount in self.take().items():
            lease.end(amount, micro_credits)


class Budgets:
    """Budgets of all API keys and accounts as this process uses them, from `start` to `aclose`.

    A call reserves its maximum cost from the amount that this process has leased; only if this does not suffice, the
    process leases more from the owner of the budgets, the database. Leases are confirmed, extended in advance and
    returned in the background.
    """

    def __init__(
        self,
        owner: BudgetOwner,
        holder: str,
        directory: str,
        clock: Clock,
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Create the budgets of a process. `holder`: name of the process in usage records and leases; `directory`: id
        of its data directory; `clock`: time of the database, which determines budget periods; `monotonic`, `sleep`:
        clock of this process.
        """
        self._owner = owner
        self._holder = holder
        self._directory = directory
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep
        self._leases: dict[LeaseId, Lease] = {}
        self._extensions: set[asyncio.Task[Grant]] = set()
        self._confirm_at = monotonic() + CONFIRM_SECONDS
        self._book_at = monotonic() + BOOK_SECONDS
        self._away_until = self._alone_until = 0.0
        self._periods: dict[str, tuple[float, float]] = {}  # name -> begin and end of the present one
        self._background: Background | None = None

    def start(self) -> None:
        """Start to confirm, extend and return the leases in the background."""
        self._background = Background("looking after leases of budgets", self.step, every=STEP_SECONDS)

    async def aclose(self, seconds: float) -> None:
        """Stop the background work, and wait at most `seconds` for it. The leases stay until `return_own`."""
        if (background := self._background) is not None:
            self._background = None
            await background.aclose(seconds)
        if self._extensions:
            await asyncio.wait({*self._extensions}, timeout=seconds)

    async def reserve(self, caller: Caller, least: int, most: int | None = None) -> Reservation | None:
        """Reserve the cost of a call in micro-credits, in each budget that may refuse it; None without a budget.
        `most`: maximum cost, `least` if None. If the rest of a budget is small, less is reserved, but at least `least`.
        Raise UmgError(QUOTA_EXHAUSTED), or UmgError(UNAVAILABLE) if a lease does not suffice and the database does not
        answer.
        """
        if not caller.budgets:
            return None
        accounts, amounts, most = list[LeaseId](), dict[Lease, int](), least if most is None else most
        try:
            # the key first, since an amount that it holds while an account refuses hinders no other key
            for charged in caller.budgets:
                period = charged.budget.period
                lease_id = LeaseId(charged.account, self._period_start(period) if period else 0, self._holder)
                accounts.append(lease_id)
                if not charged.budget.soft:
                    lease = self._lease_of(lease_id, charged.budget.micro_credits)
                    most = await self._reserve_in(lease, charged, least, most)
                    amounts[lease] = most
        except BaseException:
            Reservation(accounts, amounts).end(0)
            raise
        reservation = Reservation(accounts, amounts)
        if len(amounts) > 1:
            reservation.reduce(most)
        return reservation

    def _lease_of(self, lease_id: LeaseId, budget: int) -> Lease:
        now, lease = self._monotonic(), self._leases.get(lease_id)
        if lease is None:
            lease = self._leases[lease_id] = Lease(lease_id, budget, now)
        elif lease.budget != budget:
            lease.budget, lease.refused_until = budget, 0.0
            lease.give_up()
        if now >= lease.valid_until:
            lease.give_up()
        lease.used_at = now
        return lease

    async def _reserve_in(self, lease: Lease, charged: ChargedBudget, least: int, most: int) -> int:
        if lease.left < lease.aim(least, most, alone=self._is_alone()):
            await self._extend(lease, charged, least, most)
        micro_credits = min(lease.left, lease.aim(least, most, alone=self._is_alone()))
        lease.reserve(micro_credits)
        return micro_credits

    async def step(self) -> None:
        """Confirm the leases if it is time, return the amounts that this process does not need or that others want,
        and extend leases in advance. Raise SQLAlchemyError or OSError.
        """
        try:
            await self._look_after_leases(self._monotonic())
        except (SQLAlchemyError, OSError):
            self._alone_until = self._monotonic() + ALONE_SECONDS
            raise

    async def _look_after_leases(self, now: float) -> None:
        for lease in self._leases.values():
            lease.measure(now)
            if now >= lease.valid_until:
                lease.give_up()
        if now >= self._book_at:
            self._book_at = now + BOOK_SECONDS
            await self._book_lost()
        if now >= self._confirm_at and self._leases:
            await self._confirm()
            self._confirm_at = now + CONFIRM_SECONDS
        if any(lease.should_look(now) for lease in self._leases.values()):
            wanted = await self._owner.wanted()
            for lease_id, lease in self._leases.items():
                lease.is_wanted, lease.looked_at = lease_id[:2] in wanted, now
        await self.return_unused()
        for lease in [*self._leases.values()]:
            if lease.should_extend(now) and not lease.extending.locked():
                lease.extend_at = now + EXTEND_AGAIN_SECONDS
                async with lease.extending:
                    await self._extend_at_owner(lease, lease.demand(now, 0, 0))

    def note_wanted(self, wanted: Mapping[tuple[str, int], int]) -> None:
        """Note when a process was last refused an amount of each account. `wanted`: the result of `settle`."""
        since = (self._clock.now() - WANTED_SECONDS) * 1e6
        for (key_id, period), micros in wanted.items():
            if (lease := self._leases.get(LeaseId(key_id, period, self._holder))) is not None:
                lease.is_wanted, lease.looked_at = micros > since, self._monotonic()

    async def return_unused(self) -> None:
        """Return amounts that this process does not need or that others want. Raise SQLAlchemyError or OSError."""
        now, amounts = self._monotonic(), dict[LeaseId, int]()
        for lease_id, lease in [*self._leases.items()]:
            excess = lease.excess(now)
            lease.left -= excess
            if lease.to_return or excess:
                amounts[lease_id], lease.to_return = lease.to_return + excess, 0
            if not (lease.left or lease.open or lease.extending.locked()) and lease.is_idle(now):
                del self._leases[lease_id]
        # A failure may have been committed: these amounts are not returned again, but with the end of the process.
        await self._owner.return_unused(amounts)
        for lease_id in amounts:
            if (returned := self._leases.get(lease_id)) is not None:
                returned.refused_until = 0.0  # a refusal of the meantime counted the amount as leased

    async def holders(self) -> set[str]:
        """Return the names of the other processes with this data directory that have leases. Raise SQLAlchemyError."""
        return set(await self._owner.holders(self._directory)) - {self._holder}

    async def return_all(self, holders: set[str]) -> None:
        """Return the leases of ended processes, by their names, whose usage records are all in the database."""
        await self._owner.return_all(holders)

    async def return_own(self) -> None:
        """Return all leases of this process to the database, once all its usage records are in it."""
        await self._owner.return_all({self._holder})

    def _is_alone(self) -> bool:
        return self._monotonic() < self._alone_until

    def _period_start(self, period: str) -> int:
        """Return the start of the present budget period, by the clock of the database."""
        now, (start, end) = self._clock.now(), self._periods.get(period, (0.0, 0.0))
        if not start <= now < end:
            start = period_start(period, datetime.fromtimestamp(now, UTC))
            next_start = period_end(period, int(start))
            self._periods[period] = start, now if next_start is None else next_start.timestamp()
        return int(start)

    async def _confirm(self) -> None:
        """Confirm all leases. If the database no longer has a lease, spend its amount no longer."""
        sent, known = self._monotonic(), [lease for lease in self._leases.values() if lease.left > 0]
        confirmed = await self._owner.confirm(self._holder)
        now = self._monotonic()
        for lease in self._leases.values():
            if lease.lease_id in confirmed and now < lease.valid_until:
                lease.valid_until = max(lease.valid_until, sent + VALID_SECONDS)
        for lease in known:
            if lease.lease_id not in confirmed:
                logger.error("a lease of this process on a budget is gone", key=lease.lease_id.key_id)
                lease.left = min(0, lease.left)

    async def _book_lost(self) -> None:
        for lease, amount in (await self._owner.book_lost()).items():
            logger.warning(
                "the lease of a lost process on a budget counts as spent until its usage records arrive",
                key=lease.key_id,
                process=lease.holder,
                micro_credits=amount,
            )

    async def _extend(self, lease: Lease, charged: ChargedBudget, least: int, most: int) -> None:
        """Extend the lease until it suffices for a call that costs at least `least`; try once to reach `most`."""
        if lease.left >= least:
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await self._extend_until(lease, charged, least, most)
                return
            self._alone_until = self._monotonic() + ALONE_SECONDS
        if lease.left < least:
            await self._extend_until(lease, charged, least, most)

    async def _extend_until(self, lease: Lease, charged: ChargedBudget, least: int, most: int) -> None:
        async with lease.extending:
            extended = False
            while lease.left < (least if extended else lease.aim(least, most)):
                refusal = lease.grant if self._monotonic() < lease.refused_until else None
                if refusal is None or least - lease.left <= lease.budget - sum(refusal.balance):
                    refusal = await self._lease_more(lease, least, most)
                if refusal is not None and lease.left < least:
                    raise _refusal(charged, lease, refusal, least)
                extended = True

    async def _lease_more(self, lease: Lease, least: int, most: int) -> Grant | None:
        """Lease more of the budget. If other processes may return unused amounts, wait for a moment. Return None if
        there is no more, or if the database does not answer and the lease suffices for `least`. Otherwise raise
        UmgError(UNAVAILABLE).
        """
        pauses = iter(RETURN_PAUSES if self._monotonic() >= lease.wait_at else ())
        while self._monotonic() >= self._away_until:
            demand = lease.demand(self._monotonic(), least, most)
            # in a task, since a caller that leaves must not lose the leased amount
            task = asyncio.create_task(self._extend_at_owner(lease, demand), name="budget lease")
            self._extensions.add(task)
            task.add_done_callback(self._end_extension)
            try:
                grant = await asyncio.shield(task)
            except (SQLAlchemyError, OSError):
                break
            if grant.micro_credits:
                return None
            pause = next(pauses, None) if grant.is_wanted and lease.left < least else None
            if pause is None:
                now = self._monotonic()
                lease.refused_until = now + REFUSAL_SECONDS
                lease.wait_at = now + WAIT_AGAIN_SECONDS if grant.is_wanted else lease.wait_at
                return grant
            await self._sleep(pause)
            if lease.left >= least:
                return None
        if lease.left >= least:
            return None
        message = "the database of the budgets does not answer; try again"
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds="1")

    def _end_extension(self, task: asyncio.Task[Grant]) -> None:
        self._extensions.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as known: the call may wait no longer

    async def _extend_at_owner(self, lease: Lease, demand: Demand) -> Grant:
        sent = self._monotonic()
        try:
            grant = await self._owner.lease(lease.lease_id, self._directory, lease.budget, demand)
        except (SQLAlchemyError, OSError):
            now = self._monotonic()
            self._away_until = now + REFUSAL_SECONDS  # the calls in the queue would wait one by one
            self._alone_until = now + ALONE_SECONDS
            raise
        self._alone_until = 0.0
        lease.grant, lease.is_wanted, lease.looked_at = grant, grant.is_wanted, self._monotonic()
        lease.rest = max(0, lease.budget - sum(grant.balance) - grant.micro_credits)
        if grant.micro_credits:
            if self._monotonic() >= lease.valid_until:  # the grant does not confirm the former amount
                lease.give_up()
            lease.left += grant.micro_credits
            lease.valid_until = max(lease.valid_until, sent + VALID_SECONDS)
        return grant


def _refusal(charged: ChargedBudget, lease: Lease, grant: Grant, need: int) -> UmgError:
    reset = period_end(charged.budget.period, lease.lease_id.period)
    unwritten = max(0, grant.own - lease.to_return - max(0, lease.left) - lease.reserved)  # costs of ended calls
    spent, reserved = grant.balance.spent + unwritten, lease.reserved + grant.tasks
    amounts = BudgetAmounts(lease.budget, spent, reserved, grant.others, need)
    return budget_exceeded(charged.owner, amounts, charged.budget.period, reset)
