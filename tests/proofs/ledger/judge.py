"""Comparison of the ledger with the responses that the provider served and the callers received."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.proofs.ledger.calls import EMBED, IMAGE, RERANK, Call, Made, Outcome
from tests.proofs.ledger.provider import INPUT_TOKENS, Provider, Sent
from umg_grpc.service.pipeline.rate_limit_token_estimates import DEFAULT_OUTPUT_TOKENS
from umg_grpc.store.budget_accounts import Balance
from umg_grpc.store.usage_record_table import UsageRecord

REQUEST_PRICE, INPUT_PRICE, TOKEN_PRICE = 2000, 3, 30
"""Micro-credits of a text call, and of each of its input and output tokens."""
VECTOR_PRICES = {EMBED: 500, RERANK: 700}
"""Micro-credits of a call, which does not depend on its tokens."""
IMAGE_PRICE = 1100
"""Micro-credits of an image."""


@dataclass
class Account:
    calls: int = 0
    charged_calls: int = 0
    killed_calls: int = 0
    served: int = 0
    """Micro-credits of the provider's answers; of a call that its caller left, or that failed in the middle, the
    gateway's count of the part it read, which is at most the part that the provider sent.
    """
    ledger: int = 0
    """Micro-credits of the usage records."""
    balance: int | None = None
    """Micro-credits by which the balance changed; None for a key without a budget."""
    held: int = 0

    @property
    def drift(self) -> int:
        """Difference of the three sums."""
        return abs(self.ledger - self.served) + (0 if self.balance is None else abs(self.balance - self.ledger))


@dataclass
class Verdict:
    accounts: list[Account]
    """Of the keys."""
    levels: dict[str, Account] = field(default_factory=dict)
    """Of the budgets of projects and organisations, by name."""
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        every = [*self.accounts, *self.levels.values()]
        return not self.faults and not any(account.drift or account.held for account in every)

    def add_level(self, name: str, keys: Iterable[int], balance: Balance) -> None:
        """Compare the balance of a budget with the sums of the keys below it, given by their numbers."""
        below = [self.accounts[number] for number in keys]
        self.levels[name] = Account(
            calls=sum(account.calls for account in below),
            charged_calls=sum(account.charged_calls for account in below),
            killed_calls=sum(account.killed_calls for account in below),
            served=sum(account.served for account in below),
            ledger=sum(account.ledger for account in below),
            balance=balance.spent,
            held=balance.held,
        )


def price(model: str, input_tokens: int, output_tokens: int, images: int = 0) -> int:
    """Return the micro-credits of a response."""
    if model == IMAGE:
        return IMAGE_PRICE * images
    return VECTOR_PRICES.get(model, REQUEST_PRICE + INPUT_PRICE * input_tokens + TOKEN_PRICE * output_tokens)


def judge(
    made: Sequence[Made],
    provider: Provider,
    records: Mapping[str, Sequence[UsageRecord]],
    balances: Sequence[Balance | None],
    key_ids: Sequence[str],
) -> Verdict:
    """Compare them. `records`: by the id of the call. `balances`, `key_ids`: by the number of the key."""
    verdict = Verdict([Account() for _ in balances])
    by_key: defaultdict[str, int] = defaultdict(int)
    for each in made:
        verdict.outcomes[each.outcome] += 1
        account, found = verdict.accounts[each.key], records.get(each.call.call_id, ())
        account.calls += 1
        sent = provider.sent.get(each.call.call_id, Sent())
        if fault := _fault(each.call, each.outcome, sent, found, key_ids[each.key]):
            verdict.faults.append(f"{each.call} {each.outcome.value}: {fault}; provider {sent}, records {found}")
        for record in found:
            by_key[record.key_id] += record.micro_credits
            account.charged_calls += record.micro_credits > 0
            account.killed_calls += _is_killed(record)
            account.served += _served(each, sent, record)
    if strange := set(records) - {each.call.call_id for each in made}:
        verdict.faults.append(f"records of calls that nobody made: {sorted(strange)}")
    for account, key_id, balance in zip(verdict.accounts, key_ids, balances, strict=True):
        account.ledger = by_key[key_id]
        if balance is not None:
            account.balance, account.held = balance
    return verdict


def _is_killed(record: UsageRecord) -> bool:
    return record.details is not None and record.details.message.startswith("the gateway was killed")


def _served(made: Made, sent: Sent, record: UsageRecord) -> int:
    if not sent.requests:
        return 0
    if not _is_killed(record) and (made.outcome is Outcome.ANSWERED or record.status == "OK"):
        return price(made.call.model, INPUT_TOKENS, made.call.output_tokens, sent.images)
    return record.micro_credits


def _fault(call: Call, outcome: Outcome, sent: Sent, records: Sequence[UsageRecord], key_id: str) -> str:
    """Return the difference between the ledger and the rest; "" without one."""
    if len(records) > 1:
        return "charged more than once"
    if not records:
        return _fault_without_record(outcome, sent)
    [record] = records
    if record.key_id != key_id:
        return "charged to another key"
    if outcome in {Outcome.FREE, Outcome.UNSENT}:
        return "a record of a call that is free"
    if record.micro_credits and not sent.requests:
        return "charged, and never sent"
    if outcome is Outcome.REFUSED and record.micro_credits:
        return "charged, and refused"
    expected = _expected_tokens(call, outcome, record)
    if expected is not None and (record.input_tokens, record.output_tokens) != expected:
        return f"not the tokens {expected} of the provider"
    if record.micro_credits not in {0, price(call.model, record.input_tokens, record.output_tokens, record.images)}:
        return "not the price of its tokens"
    if _is_killed(record):
        estimate = call.output_tokens if call.has_maximum else DEFAULT_OUTPUT_TOKENS
        is_estimate = record.output_tokens in {0, estimate} and record.images in {0, call.images}
        return "" if is_estimate else "not the estimate of a killed call"
    if record.output_tokens > sent.output_tokens:
        return "more tokens than the provider sent"
    if record.images > sent.images:
        return "more images than the provider sent"
    return ""


def _fault_without_record(outcome: Outcome, sent: Sent) -> str:
    if outcome is Outcome.ANSWERED:
        return "answered, and not charged"
    if outcome is Outcome.FREE and sent.requests:
        return "free, and sent to the provider"
    if outcome in {Outcome.CALLER_LEFT, Outcome.BROKEN, Outcome.FAILED} and sent.requests > sent.faults:
        return "sent to the provider, and not charged"
    return ""


def _expected_tokens(call: Call, outcome: Outcome, record: UsageRecord) -> tuple[int, int] | None:
    if outcome is Outcome.ANSWERED or (record.status == "OK" and not record.estimated):
        return INPUT_TOKENS, call.output_tokens
    return None
