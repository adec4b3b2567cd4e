"""Verdict on one event: the calls, records, money, limits and tasks of its run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.proofs.chaos.events import Event
from tests.proofs.chaos.load import AT_ONCE, CONCURRENCY, KEYS, PER_MINUTE, RPM, Ended
from tests.proofs.chaos.provider import CountingProvider
from tests.proofs.chaos.videos import TaskCounts
from tests.proofs.ledger.calls import HEDGED
from tests.proofs.ledger.judge import judge
from umg_grpc.store.budget_accounts import Balance
from umg_grpc.store.usage_record_table import UsageRecord

UNRECORDED = ("answered, and not charged", "sent to the provider, and not charged")
"""Faults of the ledger's judge that are lost records."""
NOTICE_SECONDS = 5.0
"""Time in which a proxy with active checks gives up a frozen gateway, and the calls that it sent there."""
LOST_SECONDS = 1.0
"""Age of the records that a lost machine may take with it."""


@dataclass(frozen=True)
class Facts:
    ended: Sequence[Ended]
    provider: CountingProvider
    records: Mapping[str, Sequence[UsageRecord]]
    """By the id of the call, those of video tasks excepted."""
    balances: Sequence[Balance | None]
    """Of the keys; None without a budget."""
    key_ids: Sequence[str]
    tasks: TaskCounts
    failed_submissions: Sequence[str]
    submissions: int
    event: Event
    began: float
    """Time of the event by the monotonic clock."""
    over: float
    """Time of its end."""
    kills: Sequence[tuple[float, float]]
    """Times before and after each SIGKILL of a gateway."""
    has_active_checks: bool
    """Whether the proxy has active health checks, and repeats calls that no provider has."""

    @property
    def lost_at(self) -> float | None:
        """Time at which a machine was lost with its data folder."""
        return self.began if self.event.loses_folder else None


@dataclass
class Verdict:
    calls: int = 0
    failed: int = 0
    cut: int = 0
    """Failed calls that had reached the provider."""
    repeated: int = 0
    """Calls that reached the provider twice, though they are not hedged."""
    kept: int = 0
    """Calls that began while a gateway was frozen, and waited until it went on."""
    slowest_seconds: float = 0.0
    lost_records: int = 0
    over: int = 0
    """Micro-credits charged beyond the responses of the provider."""
    under: int = 0
    """Micro-credits of answers that were not charged."""
    overspent: int = 0
    exceeded: int = 0
    """Calls beyond the limits of the keys."""
    tasks: TaskCounts = field(default_factory=lambda: TaskCounts(0, (), (), (), ()))
    failures: list[str] = field(default_factory=list)
    """Failed calls, for people."""
    faults: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.faults


def verdict_of(facts: Facts) -> Verdict:
    verdict = Verdict(tasks=facts.tasks)
    _count_calls(facts, verdict)
    _compare_money(facts, verdict)
    _compare_limits(facts.provider, verdict)
    for word in ("doubled", "hanging", "lost"):
        if found := getattr(facts.tasks, word):
            verdict.faults.append(f"tasks {word}: {', '.join(found)}")
    return verdict


def _count_calls(facts: Facts, verdict: Verdict) -> None:
    sent = facts.provider.sent
    failed = [each for each in facts.ended if each.has_failed]
    verdict.calls = len(facts.ended) + facts.submissions
    verdict.failed = len(failed) + len(facts.failed_submissions)
    verdict.cut = sum(each.made.call.call_id in sent for each in failed)
    verdict.slowest_seconds = max((each.seconds for each in facts.ended), default=0.0)
    twice = [each.made.call for each in facts.ended if _is_repeated(each, facts.provider)]
    verdict.repeated = len(twice)
    verdict.faults += [f"sent twice: {call}" for call in twice]
    kept = [each for each in facts.ended if facts.event.freezes and _is_kept(each, facts)]
    verdict.kept = len(kept)
    if facts.has_active_checks:
        lost = [] if facts.event.refuses else [each for each in failed if not _is_killed(each, facts.kills)]
        # over gRPC a proxy cannot know which calls a gateway has read
        verdict.faults += [f"failed: {each}" for each in lost if each.made.call.kind != "grpc"]
        verdict.faults += [f"kept by a frozen gateway: {each}" for each in kept if each.made.call.kind != "grpc"]
    verdict.failures = [f"{each.made.call}, {each.seconds:.1f} s: {each.answer}" for each in failed]
    verdict.failures += facts.failed_submissions


def _is_repeated(each: Ended, provider: CountingProvider) -> bool:
    call = each.made.call
    return call.model != HEDGED and call.call_id in provider.sent and provider.sent[call.call_id].requests > 1


def _is_killed(each: Ended, kills: Sequence[tuple[float, float]]) -> bool:
    return any(each.began <= after and before <= each.began + each.seconds for before, after in kills)


def _is_kept(each: Ended, facts: Facts) -> bool:
    return facts.began < each.began and each.began + NOTICE_SECONDS < facts.over < each.began + each.seconds


def _compare_money(facts: Facts, verdict: Verdict) -> None:
    """Compare the records with the responses, and the balances with the budgets."""
    found = judge([each.made for each in facts.ended], facts.provider, facts.records, facts.balances, facts.key_ids)
    ages = {} if facts.lost_at is None else _ages(facts.ended, facts.lost_at)
    for fault in found.faults:
        is_lost = any(text in fault for text in UNRECORDED)
        verdict.lost_records += is_lost
        age = next((age for call_id, age in ages.items() if f"'{call_id}'" in fault), None)
        if not is_lost or age is None:
            verdict.faults.append(fault)
        elif age > LOST_SECONDS:
            verdict.faults.append(f"ended {age:.1f} s before the machine was lost: {fault}")
    for kind, account, key_id in zip(KEYS, found.accounts, facts.key_ids, strict=True):
        verdict.over += max(0, account.ledger - account.served)
        verdict.under += max(0, account.served - account.ledger)
        budget = kind.fields.get("budget_micro_credits")
        if budget is None or account.balance is None:
            continue
        verdict.overspent += max(0, account.balance - budget)
        wrong = account.balance != account.ledger if facts.lost_at is None else account.balance < account.ledger
        if wrong or account.balance > budget:
            verdict.faults.append(
                f"{kind.name} ({key_id}): {account.balance} of {budget} spent, records of {account.ledger}"
            )


def _ages(ended: Sequence[Ended], lost_at: float) -> dict[str, float]:
    return {each.made.call.call_id: lost_at - each.began - each.seconds for each in ended if each.began < lost_at}


def _compare_limits(provider: CountingProvider, verdict: Verdict) -> None:
    beyond = Counter(
        {
            f"calls of {KEYS[PER_MINUTE].name}": provider.most_in_a_minute(PER_MINUTE) - RPM,
            KEYS[AT_ONCE].name: provider.most_at_once(AT_ONCE) - CONCURRENCY,
        }
    )
    for name, count in (+beyond).items():
        verdict.exceeded += count
        verdict.faults.append(f"{name}: {count} beyond the limit")
