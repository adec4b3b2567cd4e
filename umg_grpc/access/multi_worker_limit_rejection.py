"""Checks that reject limits if several worker processes run without a common Redis: each would count separately."""

from collections.abc import Mapping, Sequence
from typing import Final

from umg_grpc.access.api_keys import Key, utc_now
from umg_grpc.access.key_settings import KeyFields
from umg_grpc.base.errors import UmgError
from umg_grpc.base.lazy_logger import LazyLogger
from umg_grpc.config import ModelInfo
from umg_grpc.v1 import pb

LIMIT_REMEDY = "set `redis` in the config, or serve with one worker"
LIMIT_FIELDS: Final = ("requests_per_minute", "tokens_per_minute", "concurrent_requests")
MAX_NAMED = 10

logger = LazyLogger(__name__)


def check_start(keys: Sequence[Key], models: Mapping[str, ModelInfo], workers: int) -> None:
    """Raise UmgError(INVALID_FIELD) for a limited key or model if workers without Redis would count it separately."""
    limited = [f"{key.name} ({key.prefix}…)" for key in keys if key.has_limits and key.is_live(utc_now())]
    _check(
        limited + _limited(models), f"--workers {workers}: these have limits, which each worker would count for itself"
    )


def check_models(models: Mapping[str, ModelInfo]) -> None:
    """Raise UmgError(INVALID_FIELD) if a model has a limit, which each worker would count separately."""
    _check(_limited(models), "these have limits, which each worker would count for itself")


def check_key(fields: KeyFields) -> None:
    """Raise UmgError(WRONG_STATE) if a change of a key sets a limit, which each worker would count separately."""
    if any(fields.get(name) is not None for name in LIMIT_FIELDS):
        message = (
            f"this gateway has several workers without Redis, and each would count a limit for itself: {LIMIT_REMEDY}"
        )
        raise UmgError(pb.ERROR_REASON_WRONG_STATE, message, state="workers")


class LimitedKeys:
    """Logger that warns once for each key that gets limits after several workers started without Redis."""

    def __init__(self) -> None:
        self._logged = set[str]()

    def note(self, key: Key) -> None:
        """Log a warning if the key has limits and was not logged before."""
        if not key.has_limits:
            self._logged.discard(key.key_id)
        elif key.key_id not in self._logged:
            self._logged.add(key.key_id)
            message = (
                f"a key has limits, which each worker counts for itself: {LIMIT_REMEDY}; the next start is refused"
            )
            logger.warning(message, key=key.key_id, key_prefix=key.prefix)


def _limited(models: Mapping[str, ModelInfo]) -> list[str]:
    return [f"model {model}" for model, info in models.items() if info.limits is not None]


def _check(limited: Sequence[str], problem: str) -> None:
    if limited:
        named = ", ".join(limited[:MAX_NAMED]) + (", …" if len(limited) > MAX_NAMED else "")
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, f"{problem}; {LIMIT_REMEDY}: {named}", field="redis")
