"""Steps that several protocols share when they decode a video provider's response."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Raw

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.lenient_numbers import LAST_SECOND
from umg_grpc.wire.errors.provider_errors import is_error, unreadable
from umg_grpc.wire.video.provider_task import ProviderResult, ProviderStatus
from umg_grpc.wire.video.providers.errors import public_message
from umg_grpc.wire.video.task_errors import (
    CONTENT_POLICY_VIOLATION,
    TASK_CANCELLED,
    TASK_EXPIRED,
    TASK_FAILED,
    task_error,
)

T = TypeVar("T")
Text = str | int | float | None
"""Id, code or word that some providers write as a number."""

QUEUED, RUNNING = pb.VIDEO_TASK_STATE_QUEUED, pb.VIDEO_TASK_STATE_RUNNING
SUCCEEDED, FAILED, CANCELLED = (
    pb.VIDEO_TASK_STATE_SUCCEEDED,
    pb.VIDEO_TASK_STATE_FAILED,
    pb.VIDEO_TASK_STATE_CANCELLED,
)
State: TypeAlias = "pb.VideoTaskState.ValueType"
MAX_WORD_CHARACTERS = 80
_WORD = re.compile(r"[^\w .:-]", re.ASCII)

MODERATED = re.compile(
    r"moderation|sensitive|content[ _-]?(?:policy|filter)|policy ?violation|violat|inappropriate|safety"
    r"|risk[ _-]?control|data_?inspection|ip_?infringement|copyright|prohibited|responsible ai|\brai\b"
    r"|审核|风控|敏感|违规",
    re.IGNORECASE,
)
"""Codes and words of a task that failed because of its input's or output's content."""


def read(kind: type[T], body: bytes) -> T:
    """Decode a response as a `kind`. Raise the error of `unreadable`."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (ValueError, RecursionError):
        raise unreadable() from None


def error_of(raw: Raw) -> object:
    """Return the value of a member `error`; None if it states no error, because it is absent, null or empty."""
    if not is_error(raw):
        return None
    value: object = msgspec.json.decode(raw)
    return value


def text(value: Text) -> str:
    """Return an id, code or state of a provider as text; "" for an absent one."""
    return "" if value is None else str(value)


def number(value: Text) -> float | None:
    """Return a number of a provider, which may be written as text; None for anything else."""
    try:
        found = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return found if math.isfinite(found) and 0 <= found <= MAX_COUNT else None


def time_of(value: Text) -> datetime | None:
    """Return the time that a provider writes as Unix seconds or milliseconds; None for anything else."""
    if not isinstance(value, int | float) or value <= 0:
        return None
    seconds = value / 1000 if value > LAST_SECOND // 100 else value
    return datetime.fromtimestamp(seconds, UTC) if seconds <= LAST_SECOND else None


def seconds_used(results: Sequence[ProviderResult]) -> int:
    """Return the length of all videos together in seconds, rounded up; 0 if it is not known."""
    lengths = [result.duration_seconds or 0 for result in results if result.variant == pb.VIDEO_VARIANT_VIDEO]
    # a length of 5.041 s is the encoder's rounding to frames, of a video of 5 s
    return math.ceil(round(sum(lengths), 1))


def progressing(word: str, words: Mapping[str, State], percent: float | None = None) -> ProviderStatus:
    """Return the status of a task that has not ended. `word`: its state in the provider's words, of which `words` is
    the table; an unknown word counts as running.
    """
    progress = None if percent is None else int(min(max(percent, 0), 99))
    state = words.get(word, RUNNING)
    if word in words and state in (QUEUED, RUNNING):
        return ProviderStatus(state=state, progress_percent=progress)
    unknown = _WORD.sub("?", word)[:MAX_WORD_CHARACTERS] or "none"
    return ProviderStatus(state=RUNNING, progress_percent=progress, unknown_word=unknown)


def succeeded(results: Sequence[ProviderResult], usage: pb.VideoUsage | None = None) -> ProviderStatus:
    """Return the status of a task that succeeded, with its results and usage. Without a video it has neither: the file
    cannot be read yet.
    """
    videos = [result for result in results if result.variant == pb.VIDEO_VARIANT_VIDEO]
    if not videos:
        return ProviderStatus(state=SUCCEEDED)
    used = pb.VideoUsage(video_count=len(videos), output_seconds=seconds_used(results))
    if usage is not None:
        used.MergeFrom(usage)
    return ProviderStatus(state=SUCCEEDED, progress_percent=100, results=tuple(results), usage=used)


def failed(message: str, code: str = "", *, kind: str = "") -> ProviderStatus:
    """Return the status of a task that failed, by the provider's message and code. `kind`: code of the failure; without
    it a violation of the content policy if the provider's words state one, else `task_failed`.
    """
    if not kind:
        kind = CONTENT_POLICY_VIOLATION if MODERATED.search(f"{code} {message}") else TASK_FAILED
    return ProviderStatus(state=FAILED, error=task_error(kind, _reason(message, code)))


def expired(message: str = "the provider gave the task up; submit it again") -> ProviderStatus:
    """Return the status of a task that its provider gave up or no longer has."""
    return ProviderStatus(state=FAILED, error=task_error(TASK_EXPIRED, public_message(message)))


def cancelled() -> ProviderStatus:
    """Return the status of a cancelled task."""
    return ProviderStatus(state=CANCELLED, error=task_error(TASK_CANCELLED, "the task was cancelled"))


def unknown_task() -> UmgError:
    """Return the error for a task that the provider does not have."""
    return UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, "the provider does not have the task")


def _reason(message: str, code: str) -> str:
    """Return the message of a failure, followed by the provider's own code."""
    shown = public_message(message) or "the provider reports no reason"
    return f"{shown} ({public_message(code)})" if code and code.lower() not in message.lower() else shown
