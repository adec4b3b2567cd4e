"""Budgets of API keys in this process, which leases a part of a key's budget from the database and reserves costs from
it.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime

from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.access.caller import Caller
from umg_grpc.access.limit_errors import budget_exceeded
from umg_grpc.errors import UmgError
from umg_grpc.store import Store
from umg_grpc.store.budget_accounts import BudgetAccounts, Grant, LeaseId, period_end, period_start
from umg_grpc.v1 import pb

REFUSAL_SECONDS = 0.5
"""Time for which a refusal is repeated without the database."""
RENEW_SECONDS = 300.0
SHARE_DIVISOR = 16
"""Part of the rest that a call whose cost has no bound of its own reserves at most, so that others can run beside it.
Half of the part of the rest that is leased at once (`REST_DIVISOR`): most of these calls need no further lease.
"""


class _Lease:
    """Part of a key's budget, in one budget period, that this process may spend without a call of the database."""

    __slots__ = (
        *("budget", "extending", "is_used", "left", "lease_id"),
        *("open", "refusal", "refused_until", "rest", "to_return"),
    )

    def __init__(self, lease_id: LeaseId, budget: int) -> None:
        self.lease_id = lease_id
        self.budget = budget
        self.left = 0
        """Amount that no call has reserved; negative after a call that cost more than its reservation."""
        self.open = 0
        """Number of reservations that have not ended."""
        self.rest = 0
        """Rest of the budget outside all leases, when this lease was extended last."""
        self.to_return = 0
        self.is_used = True  # since the last `return_unused`
        self.refusal: Grant | None = None
        self.refused_until = 0.0
        self.extending = asyncio.Lock()

    def aim(self, least: int, most: int) -> int:
        """Return the unreserved micro-credits that the lease should have before a call that costs between `least` and
        `most`.

        It is `most`, or less if the rest of the budget is small, but at least `least`.
        """
        return max(least, min(most, (self.left + self.rest) // SHARE_DIVISOR))


class Reservation:
    """Amount of a budget that is reserved for the cost of one call.

    `end` replaces it by the actual cost, or `hand_over` leaves it to a video task, which is charged later.
    """

    __slots__ = ("_lease", "_micro_credits")

    def __init__(self, lease: _Lease, micro_credits: int) -> None:
        self._lease = lease
        self._micro_credits: int | None = micro_credits

    @property
    def lease_id(self) -> LeaseId:
        """Id of the lease, for the usage record of the call. That record must be in the journal before `end` is
        called.
        """
        return self._lease.lease_id

    @property
    def micro_credits(self) -> int:
        """Reserved amount in micro-credits; 0 after the end."""
        return self._micro_credits or 0

    def hand_over(self) -> None:
        """End the reservation in this process without a charge, once `budget_accounts.hold` has moved its amount to a
        video task.
        """
        if self._micro_credits is not None:
            self._lease.open -= 1
            self._micro_credits = None

    def end(self, micro_credits: int) -> None:
        """Charge the actual cost of the call instead of the reserved amount; 0 releases all of it. Further calls have
        no effect.
        """
        if self._micro_credits is not None:
            self._lease.left += self._micro_credits - micro_credits
            self._lease.open -= 1
            self._micro_credits = None


class Budgets:
    """Budgets of all API keys as this process uses them, until `aclose`.

    A call reserves its maximum cost from the amount that this process has leased; the process leases more from the
    database only if that does not suffice. Unused leases are returned within seconds.
    """

    def __init__(
        self, store: Store, holder: str, directory: str, now: Callable[[], datetime], monotonic: Callable[[], float]
    ) -> None:
        """Create the budgets of a process.

        `holder`: name of the process in usage records and leases; `directory`: id of its data directory; `now`,
        `monotonic`: clocks.
        """
        self._accounts = BudgetAccounts(store)
        self._holder = holder
        self._directory = directory
        self._now = now
        self._monotonic = monotonic
        self._leases: dict[LeaseId, _Lease] = {}
        self._extensions: set[asyncio.Task[Grant]] = set()
        self._renew_at = 0.0

    async def reserve(self, caller: Caller, least: int, most: int | None = None) -> Reservation | None:
        """Reserve the cost of a call in micro-credits. Return the reservation; None for a key without a budget.

        `most`: maximum cost, `least` if None. If the rest of the budget is small, less is reserved, but at least
        `least`. Raise UmgError(QUOTA_EXHAUSTED), or UmgError(UNAVAILABLE) if the lease does not suffice and the
        database does not answer.
        """
        if (budget := caller.budget_micro_credits) is None:
            return None
        lease_id = LeaseId(caller.key_id, period_start(caller.budget_period, self._now()), self._holder)
        lease = self._leases.get(lease_id)
        if lease is None:
            lease = self._leases[lease_id] = _Lease(lease_id, budget)
        elif lease.budget != budget:
            lease.budget, lease.refused_until = budget, 0.0
            if lease.left > 0:
                lease.to_return, lease.left = lease.to_return + lease.left, 0
        lease.is_used = True
        most = least if most is None else most
        if lease.left < lease.aim(least, most):
            await self._extend(lease, caller, least, most)
        micro_credits = min(lease.left, lease.aim(least, most))
        lease.left -= micro_credits
        lease.open += 1
        return Reservation(lease, micro_credits)

    async def return_unused(self) -> None:
        """Return the leased amounts that no call used since the last call of this method to the database, and renew all
        other leases.

        Raise SQLAlchemyError.
        """
        amounts: dict[LeaseId, int] = {}
        for lease_id, lease in [*self._leases.items()]:
            if not lease.is_used and lease.left > 0:
                lease.to_return, lease.left = lease.to_return + lease.left, 0
            if lease.to_return:
                amounts[lease_id], lease.to_return = lease.to_return, 0
            if not (lease.is_used or lease.open or lease.left < 0 or lease.extending.locked()):
                del self._leases[lease_id]
            lease.is_used = False
        # A failure may have been committed: these amounts are not returned again, but with the end of the process.
        await self._accounts.return_unused(amounts)
        if self._monotonic() >= self._renew_at:
            self._renew_at = self._monotonic() + RENEW_SECONDS
            await self._accounts.renew(self._holder, self._now())
            await self._accounts.return_expired(self._directory, self._now())

    async def holders(self) -> set[str]:
        """Return the names of the other processes with this data directory that have leases. Raise SQLAlchemyError."""
        return set(await self._accounts.holders(self._directory)) - {self._holder}

    async def return_all(self, holders: set[str]) -> None:
        """Return the leases of ended processes to the database. `holders`: names of processes whose usage records are
        all in it.
        """
        await self._accounts.return_all(holders)

    async def return_own(self) -> None:
        """Return all leases of this process to the database, once all its usage records are in it."""
        await self._accounts.return_all({self._holder})

    async def _extend(self, lease: _Lease, caller: Caller, least: int, most: int) -> None:
        """Lease more of the budget until the lease suffices for a call that costs at least `least`; try once to reach
        `most`.

        Raise UmgError(QUOTA_EXHAUSTED), or UmgError(UNAVAILABLE) if the database does not answer.
        """
        async with lease.extending:
            extended = False
            while lease.left < (least if extended else lease.aim(least, most)):
                refusal = lease.refusal if self._monotonic() < lease.refused_until else None
                if refusal is None or least - lease.left <= lease.budget - sum(refusal.balance):
                    refusal = await self._lease_more(lease, least, most)
                if refusal is not None and lease.left < least:
                    raise self._refusal(caller, lease, refusal, least)
                extended = True

    async def _lease_more(self, lease: _Lease, least: int, most: int) -> Grant | None:
        """Lease more of the budget from the database. Return None, or its answer with the budget's balance if it
        granted nothing.

        None also if the database does not answer but the lease suffices for `least`; otherwise raise
        UmgError(UNAVAILABLE).
        """
        # in a task, since a caller that leaves must not lose the leased amount
        task = asyncio.create_task(self._extend_in_database(lease, least, most), name="budget lease")
        self._extensions.add(task)
        task.add_done_callback(self._extensions.discard)
        try:
            grant = await asyncio.shield(task)
        except (SQLAlchemyError, OSError):
            if lease.left >= least:
                return None
            message = "the database of the budgets does not answer; try again"
            raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds="1") from None
        if grant.micro_credits:
            return None
        lease.refusal, lease.refused_until = grant, self._monotonic() + REFUSAL_SECONDS
        return grant

    async def _extend_in_database(self, lease: _Lease, least: int, most: int) -> Grant:
        missing = max(0, least - lease.left)
        want = most * (lease.open + 2) if most > least else 0  # for the calls that probably follow
        grant = await self._accounts.lease(
            lease.lease_id, self._directory, lease.budget, missing, self._now(), want=want
        )
        lease.left += grant.micro_credits
        lease.rest = max(0, lease.budget - sum(grant.balance) - grant.micro_credits)
        return grant

    def _refusal(self, caller: Caller, lease: _Lease, grant: Grant, need: int) -> UmgError:
        reset = period_end(caller.budget_period, lease.lease_id.period)
        return budget_exceeded(lease.budget, caller.budget_period, grant.balance, need, reset)
