"""Verdict on a crash test: nothing lost, nothing sent twice, every end right, every amount exact."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from umg_grpc.store.budget_accounts import Balance
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.store.video_task_table import FAILED_STATE, SUCCEEDED_STATE, TERMINAL_STATES
from umg_grpc.v1 import pb

UNCONFIRMED = "submit_unconfirmed"
WORDS = {SUCCEEDED_STATE: "succeeded", FAILED_STATE: "failed"}
ENDS = frozenset(WORDS.values())
"""States of notifications of ended tasks, in all entries of the test that have notifications."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    task_ids: Mapping[str, str]
    """Tag -> id of the task that the caller got."""
    tasks: Mapping[str, MediaTask]
    """Rows by their ids."""
    charged: Mapping[str, int]
    """Micro-credits of the usage records by their ids, which are those of the tasks."""
    balance: Balance
    submissions: Mapping[str, int]
    """Number of submissions that the providers received, by tag."""
    accepted: Collection[str]
    """Tags of the tasks that a provider has."""
    notified: Mapping[str, Collection[str]]
    """Id of a task -> states of its notifications."""
    silent: Collection[str]
    """Ids of the tasks without notifications."""
    kills: int
    price: int
    """Micro-credits of a task that succeeded."""
    seconds_after_kill: float
    """Time from the last kill to the end of the last task."""

    @property
    def ends(self) -> Counter[str]:
        return Counter(_end(row) for row in self.tasks.values())

    def faults(self) -> Iterator[str]:
        ids = set(self.task_ids.values())
        if len(ids) != len(self.task_ids):
            yield "two submissions got the same task"
        for tag, task_id in self.task_ids.items():
            yield from self._faults_of(tag, task_id)
        for tag, count in self.submissions.items():
            if count > 1:
                yield f"{tag}: submitted {count} times"
        for task_id in self.tasks.keys() - ids:
            yield f"{task_id}: a task that no caller got"
        spent = sum(row.micro_credits for row in self.tasks.values())
        if self.balance.spent != spent or sum(self.charged.values()) != spent:
            yield f"the tasks cost {spent}, the ledger has {self.balance.spent}, usage {sum(self.charged.values())}"

    def _faults_of(self, tag: str, task_id: str) -> Iterator[str]:
        row = self.tasks.get(task_id)
        if row is None:
            yield f"{tag}: lost"
            return
        end, wanted = _end(row), "succeeded" if tag.endswith("-ok") else "task_failed"
        if row.state not in TERMINAL_STATES:
            yield f"{tag}: not ended, in state {row.state}"
        elif end not in {wanted, UNCONFIRMED}:
            yield f"{tag}: ended as {end}, not as {wanted}"
        if row.micro_credits != (self.price if end == "succeeded" else 0):
            yield f"{tag}: charged {row.micro_credits} at the end {end}"
        if task_id not in self.charged or self.charged[task_id] != row.micro_credits:
            yield f"{tag}: its usage record has {self.charged.get(task_id)}"
        word = WORDS.get(pb.VideoTaskState.ValueType(row.state))
        if task_id not in self.silent and word not in self.notified.get(task_id, ()):
            yield f"{tag}: its end was not notified"


def _end(row: MediaTask) -> str:
    if row.state not in TERMINAL_STATES:
        return "open"
    return "succeeded" if row.state == SUCCEEDED_STATE else pb.VideoTaskError.FromString(row.error or b"").code
