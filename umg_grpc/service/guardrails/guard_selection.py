"""Guards of the current config, and the selection of the guards that check the calls of a key to a model."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import NamedTuple

from umg_grpc.access.caller_identity import Caller
from umg_grpc.base.wildcard_patterns import matcher
from umg_grpc.config.config_values import GuardRow
from umg_grpc.operations import OPERATIONS_BY_VALUE, ModelOperation
from umg_grpc.service.guardrails.guard_interface import Guard

Count = Callable[[str, str, str, float], None]
"""Function (guard, phase, decision, seconds) that counts a check."""


class GuardPlan(NamedTuple):
    """Guards of the calls of a key to a model for one operation."""

    operation: ModelOperation
    request: tuple[Guard, ...]
    response: tuple[Guard, ...]
    digest: str
    """Digest of the settings of the guards, in the key of cached responses."""
    reads_content: bool
    """Whether a guard of the response gets the whole message, with its media."""
    note: Count


class Guards:
    """All guards of the config."""

    def __init__(self, guards: Sequence[Guard], count: Count) -> None:
        self.all = guards
        self._count = count

    def plan(self, operation: ModelOperation, model: str, caller: Caller) -> GuardPlan | None:
        """Return the guards that check the calls of a key to a model; None if no guard does."""
        scope = OPERATIONS_BY_VALUE[operation].scope
        found = [guard for guard in self.all if _applies(guard.row, scope, model, caller.name)]
        if not found:
            return None
        request, response = (
            tuple(guard for guard in found if phase in guard.row.phases) for phase in ("request", "response")
        )
        digest = sha256("\0".join(repr(guard.row) for guard in found).encode()).hexdigest()
        reads_content = any(guard.row.content for guard in response)
        return GuardPlan(operation, request, response, digest, reads_content, self._count)


def _applies(row: GuardRow, scope: str, model: str, key: str) -> bool:
    return (
        (not row.operations or scope in row.operations)
        and matcher(row.models).match(model) is not None
        and (not row.keys or matcher(row.keys).match(key) is not None)
    )
