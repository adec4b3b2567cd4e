"""Lease of a process: the part of a key's budget that it may spend without the database, and the size of this part.
While the lease is valid, it covers the costs at the process's rate of spending, and the reservations of calls in
flight.
"""

import asyncio
import math
from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import Protocol

from umg_grpc.store.budget_accounts import CALL_DIVISOR, LEAST_SHARES, SHARE_DIVISOR, Demand, Grant, LeaseId

MINUTE_SECONDS = 60.0
LEAST_AHEAD_SECONDS = 65.0
"""Seconds of spending below which a lease is extended: a minute without the database, and the confirmation before."""
RATE_SECONDS = 30.0
"""Time constant of the mean over which the rate of spending is measured."""
LEAST_RATE_SECONDS = 10.0
"""Shortest time to which spent amounts are related: a single call is a poor measure of a rate."""
LEAST_RATE_CALLS = 4
"""Calls after which a lease is extended in advance, and kept for a minute."""
PEAK_SECONDS = 30.0
"""Time of which the largest reservations are known; those of the time before it count too."""
VALID_SECONDS = 75.0
"""Seconds after a confirmation in which a lease may be spent; fewer than the `LOST_SECONDS` until it is booked."""
FLOOR_CALLS = 2
"""Calls for which a lease should suffice, also at a low rate."""
ALONE_DIVISOR = 4
"""Part of a lease that a call whose cost has no bound of its own reserves at most while the lease cannot be extended,
so that others can run beside it.
"""
LOOK_SECONDS, TIGHT_LOOK_SECONDS = 1.5, 0.5
"""Seconds after which a query finds out again whether others want unused amounts: usually, and while the rest of
the budget is small. Usage records of calls bring the response once a second.
"""
SHORT_IDLE_SECONDS = 2.0
"""Seconds without calls after which a lease with few calls, or with a small rest, returns its unused amount."""


class BudgetOwner(Protocol):
    """Interface of the owner of budgets, from which processes lease parts: the database (`BudgetAccounts`).

    A process or service that owns the budgets of some keys would implement it for them: `lease` reserves under its own
    lock instead of a row's, `confirm` and `wanted` are one message to it, and it writes its accounts to the database.
    Costs do not pass through here: usage records charge them, and name the lease (`budget_accounts.settle`).
    Every method raises SQLAlchemyError or OSError if the owner does not answer.
    """

    def lease(self, lease: LeaseId, directory: str, budget: int, demand: Demand) -> Awaitable[Grant]:
        """Add micro-credits to a lease and confirm the lease. It is created if it does not exist."""
        ...

    def return_unused(self, amounts: Mapping[LeaseId, int]) -> Awaitable[None]:
        """Subtract unused amounts from leases."""
        ...

    def confirm(self, holder: str) -> Awaitable[set[LeaseId]]:
        """Confirm all leases of the process `holder`. Return the ids of these leases."""
        ...

    def wanted(self) -> Awaitable[set[tuple[str, int]]]:
        """Return the accounts (key id, start of the period) whose unused leased amounts should be returned."""
        ...

    def book_lost(self) -> Awaitable[Mapping[LeaseId, int]]:
        """Book the leases of lost processes as spent. Return lease -> amount."""
        ...

    def holders(self, directory: str) -> Awaitable[Sequence[str]]:
        """Return the names of the processes with this data directory that have leases."""
        ...

    def return_all(self, holders: Collection[str]) -> Awaitable[None]:
        """Return all amounts in the leases of `holders`: processes whose usage records are all in the database."""
        ...


class Lease:
    """Part of a key's budget, in one budget period, that this process may spend without a call of the database."""

    __slots__ = (
        *("budget", "extending", "extend_at", "grant", "left", "lease_id", "open", "refused_until", "reserved"),
        *("is_wanted", "looked_at", "rest", "to_return", "used_at", "valid_until", "wait_at"),
        *("_calls", "_largest", "_measured_at", "_peak", "_peak_at", "_seconds", "_spent", "_total"),
        *("_former_largest", "_former_peak"),
    )

    def __init__(self, lease_id: LeaseId, budget: int, now: float) -> None:
        """Create an empty lease. `now`: monotonic time, as in the other methods."""
        self.lease_id = lease_id
        self.budget = budget
        self.left = 0
        """Amount that no call has reserved; negative after a call that cost more than its reservation."""
        self.open = self.reserved = 0
        """Number and amount of the reservations that have not ended."""
        self.rest = 0
        """Rest of the budget outside all leases, when this lease was extended last."""
        self.to_return = 0
        self.grant: Grant | None = None
        """Last response of the owner of the budget."""
        self.refused_until = self.wait_at = self.extend_at = 0.0
        """Times until which a refusal is repeated, from which on a refused call waits for returns again, and from which
        on the lease is extended in advance.
        """
        self.valid_until = 0.0
        """Time at which the lease can be spent no longer, unless it is confirmed."""
        self.is_wanted = False
        """Whether a process was refused when this process looked last (`looked_at`), so that it returns all it can."""
        self.used_at = self.looked_at = self._measured_at = self._peak_at = now
        self._spent = 0  # since `_measured_at`
        self._total = self._seconds = 0.0  # spent amount before, and the time in which it was spent, both decaying
        self._calls = 0
        # Largest reservation, and largest sum of those at the same time: since `_peak_at`, and in the time before it.
        self._largest = self._former_largest = self._peak = self._former_peak = 0
        self.extending = asyncio.Lock()

    @property
    def largest(self) -> int:
        """Largest recent reservation."""
        return max(self._largest, self._former_largest)

    @property
    def peak(self) -> int:
        """Largest recent sum of the amounts that were reserved at the same time."""
        return max(self._peak, self._former_peak)

    def aim(self, least: int, most: int, *, alone: bool = False) -> int:
        """Return the unreserved micro-credits that the lease should have before a call that costs `least` to `most`:
        `most` or, if the rest of the budget is small, less, but at least `least`. `alone`: the lease cannot be
        extended.
        """
        part = self.left // ALONE_DIVISOR if alone else (self.left + self.rest) // CALL_DIVISOR
        return max(least, min(most, part))

    def reserve(self, micro_credits: int) -> None:
        """Reserve an amount for a call."""
        self.left -= micro_credits
        self.reserved += micro_credits
        self.open += 1
        self._largest = max(self._largest, micro_credits)
        self._peak = max(self._peak, self.reserved)
        self._calls += 1

    def end(self, reserved: int, spent: int, moved: int = 0) -> None:
        """End a reservation. `spent`: cost of the call. `moved`: part that a video task has taken over."""
        self.left += reserved - spent - moved
        self.reserved -= reserved
        self.open -= 1
        self._spent += spent + moved

    def release(self, micro_credits: int) -> None:
        """Release a part of the amount that a call has reserved. The reservation continues with the rest."""
        self.left += micro_credits
        self.reserved -= micro_credits

    def merge(self) -> None:
        """Count two reservations as one from now on. Their amounts stay reserved."""
        self.open -= 1

    def give_up(self) -> None:
        """Stop spending the amount that no call has reserved. It is returned with the next call of the database."""
        if self.left > 0:
            self.to_return, self.left = self.to_return + self.left, 0

    def measure(self, now: float) -> None:
        """Measure the rate of spending since the last call of this method, and forget old reservations."""
        if (seconds := now - self._measured_at) > 0:
            decay = math.exp(-seconds / RATE_SECONDS)
            self._total = self._total * decay + self._spent
            self._seconds = self._seconds * decay + seconds
            self._measured_at, self._spent = now, 0
        if now - self._peak_at >= PEAK_SECONDS:
            self._former_largest, self._largest = self._largest, 0
            self._former_peak, self._peak = self._peak, self.reserved
            self._peak_at = now

    def demand(self, now: float, least: int, most: int) -> Demand:
        """Return the amounts to lease for a call that costs between `least` and `most`, and for later calls. If both
        are 0, the lease is only extended in advance.
        """
        more = self.reserved + FLOOR_CALLS * most if most else 0  # as many again: calls in flight may become more
        ahead = max(self._ahead(now, VALID_SECONDS), self._spending(now, VALID_SECONDS) + more)
        return Demand(max(0, least - self.left), max(0, most - self.left), max(0, ahead - self.left))

    def target(self, now: float) -> int:
        """Return the unreserved amount that the process needs while the lease is valid, at most its share."""
        return min(self._ahead(now, VALID_SECONDS), self._share())

    def _spending(self, now: float, seconds: float) -> int:
        measured = max(LEAST_RATE_SECONDS, self._seconds + now - self._measured_at)
        return int(seconds * (self._total + self._spent) / measured)

    def _ahead(self, now: float, seconds: float) -> int:
        return self._spending(now, seconds) + max(FLOOR_CALLS * self.largest, self.peak - self.reserved)

    def _share(self) -> int:
        processes = LEAST_SHARES if self.grant is None else max(self.grant.processes, LEAST_SHARES)
        return (max(0, self.left) + self.rest) // (SHARE_DIVISOR * processes)

    def is_tight(self) -> bool:
        """Return whether the rest of the budget is small beside the leases, so that others may soon want a part."""
        others = 0 if self.grant is None else self.grant.others
        return others > 0 and self.rest < 2 * (others + self.left)

    def is_idle(self, now: float) -> bool:
        """Return whether no call has used the lease for a minute."""
        return now - self.used_at >= MINUTE_SECONDS

    def should_look(self, now: float) -> bool:
        """Return whether it is time to look whether other processes want the unused amount."""
        return self.left > 0 and now - self.looked_at >= (TIGHT_LOOK_SECONDS if self.is_tight() else LOOK_SECONDS)

    def excess(self, now: float) -> int:
        """Return the amount without reservations that the process should return now."""
        is_short = self._calls < LEAST_RATE_CALLS or self.is_tight()
        if self.is_wanted or now - self.used_at >= (SHORT_IDLE_SECONDS if is_short else MINUTE_SECONDS):
            return max(0, self.left)
        target = self.target(now)
        return self.left - target if self.left > 2 * target else 0

    def should_extend(self, now: float) -> bool:
        """Return whether the lease should be extended in advance, so that it lasts a minute without the database."""
        if self._calls < LEAST_RATE_CALLS or now < self.extend_at or now - self.used_at >= MINUTE_SECONDS:
            return False
        if self.is_wanted or self.is_tight():
            return False
        return self.left < min(self._ahead(now, LEAST_AHEAD_SECONDS), 3 * self._share() // 4)
