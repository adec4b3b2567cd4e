"""The judge of the ledger finds each kind of difference."""

import dataclasses

import pytest

from tests.proofs.ledger.calls import CHAT, Call, Made, Outcome
from tests.proofs.ledger.judge import judge, price
from tests.proofs.ledger.provider import INPUT_TOKENS, Provider, Sent
from umg_grpc.service.pipeline.usage_recording import KILLED_DETAILS
from umg_grpc.store.budget_accounts import Balance
from umg_grpc.store.usage_record_table import UsageRecord

CALL = Call("call-0-0", "chat", CHAT, 9, leaves=False)
RIGHT = {
    "record_id": "a",
    "request_id": CALL.call_id,
    "key_id": "key",
    "operation": "generate",
    "method": "m",
    "face": "chat",
    "model": CHAT,
    "channel": "one",
    "start_micros": 1,
    "duration_micros": 1,
    "status": "OK",
    "reason": "",
    "attempts": 1,
    "cached": False,
    "estimated": False,
    "input_tokens": INPUT_TOKENS,
    "output_tokens": 9,
    "micro_credits": price(CHAT, INPUT_TOKENS, 9),
}
SPENT = Balance(price(CHAT, INPUT_TOKENS, 9), 0)


@dataclasses.dataclass(frozen=True)
class Case:
    id: str
    fault: str
    records: int = 1
    changes: dict[str, object] = dataclasses.field(default_factory=dict)
    outcome: Outcome = Outcome.ANSWERED
    sent: bool = True


CASES = [
    Case("right", ""),
    Case("twice", "charged more than once", records=2),
    Case("lost", "answered, and not charged", records=0),
    Case("lost in a kill", "sent to the provider, and not charged", records=0, outcome=Outcome.BROKEN),
    Case("never sent", "charged, and never sent", sent=False),
    Case("another key", "charged to another key", changes={"key_id": "other"}),
    Case("free", "a record of a call that is free", outcome=Outcome.FREE),
    Case("refused", "charged, and refused", outcome=Outcome.REFUSED),
    Case("fewer tokens", "not the tokens (7, 9)", changes={"output_tokens": 8}),
    Case("another price", "not the price of its tokens", changes={"micro_credits": 1}),
    Case("more than sent", "more tokens", changes={"output_tokens": 10, "micro_credits": price(CHAT, INPUT_TOKENS, 10), "status": "CANCELLED", "estimated": True}, outcome=Outcome.CALLER_LEFT),
    Case("more images than sent", "more images", changes={"images": 1}),
    Case("another estimate of a killed call", "not the estimate", changes={"output_tokens": 8, "micro_credits": price(CHAT, INPUT_TOKENS, 8), "status": "INTERNAL", "estimated": True, "details": KILLED_DETAILS}, outcome=Outcome.BROKEN),
    Case("the estimate of a killed call", "", changes={"status": "INTERNAL", "estimated": True, "details": KILLED_DETAILS}, outcome=Outcome.BROKEN),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_difference_of_one_call_is_found(case: Case) -> None:
    provider = Provider(0, 0.0)
    if case.sent:
        provider.sent[CALL.call_id] = Sent(requests=1, complete=1, output_tokens=9)
    record = UsageRecord(**{**RIGHT, **case.changes})
    records = {CALL.call_id: [record] * case.records}
    verdict = judge([Made(CALL, 0, case.outcome)], provider, records, [SPENT], ["key"])
    assert (case.fault in "".join(verdict.faults)) if case.fault else verdict.holds, verdict


@pytest.mark.parametrize("balance", [Balance(SPENT.spent + 1, 0), Balance(SPENT.spent, 1)], ids=["spent", "held"])
def test_a_difference_of_the_balance_is_found(balance: Balance) -> None:
    provider = Provider(0, 0.0)
    provider.sent[CALL.call_id] = Sent(requests=1, complete=1, output_tokens=9)
    verdict = judge(
        [Made(CALL, 0, Outcome.ANSWERED)], provider, {CALL.call_id: [UsageRecord(**RIGHT)]}, [balance], ["key"]
    )
    assert not verdict.holds
