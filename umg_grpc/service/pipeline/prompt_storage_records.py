"""Usage record of a call that stores the beginning of a prompt; the key pays for it beside the caller's call."""

import time
from collections.abc import Callable

from umg_grpc.access.usage_record_writer import UsageLog
from umg_grpc.knowledge.price_calculation import Prices
from umg_grpc.routing import Target
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.pipeline.limits_and_budget import reserve_budget
from umg_grpc.service.pipeline.usage_recording import settle_usage
from umg_grpc.store.usage_record_table import AttemptRecord
from umg_grpc.v1 import pb

STORAGE_PROTOCOL = "cachedContents.create"
"""Call of the provider, in the record of the attempt."""


class StorageRecord:
    """Record of one attempt to store the beginning of a prompt, with the request id of the call that caused it."""

    def __init__(
        self, usage: UsageLog | None, count: Callable[[Call], None], call: Call, target: Target, prices: Prices
    ) -> None:
        """Begin the record. `usage`: None for no records; `count`: adds it to the metrics; `prices`: of the storage."""
        self._usage, self._count = usage, count
        self._has_budget = call.charges.reservation is not None
        self._target = target
        self._call = Call(arrival=call.arrival, known_caller=call.known_caller)
        self._call.charges.prices = prices
        self._call.facts.model, self._call.facts.channel = call.facts.model, target.channel.name

    async def reserve(self, micro_credits: int) -> None:
        """Reserve the cost from the key's budget, if it has one. Raise UmgError if too little of the budget is left."""
        if self._has_budget:
            await reserve_budget(self._call, self._usage, micro_credits)

    def charge(self, usage: pb.Usage) -> None:
        """Charge the tokens that were stored."""
        facts = self._call.facts
        seconds = time.perf_counter() - facts.began_at
        facts.usage, facts.attempts = usage, 1
        facts.ended_attempts.append(
            AttemptRecord(
                channel=self._target.channel.name,
                model=self._target.model,
                start_micros=0,
                duration_micros=int(seconds * 1e6),
                status=200,
                request_id="",
                reason="",
                protocol=STORAGE_PROTOCOL,
            )
        )
        settle_usage(self._usage, self._call, seconds, None)
        self._count(self._call)

    def end(self) -> None:
        """End the record, and release the part of the reservation that was not used."""
        charges = self._call.charges
        if charges.reservation is not None:
            charges.reservation.end(charges.micro_credits)
