"""Steps that several protocols share when they decode a video provider's response."""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Raw

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.json_decoding import any_value
from umg_grpc.wire.core.lenient_number_reading import LAST_SECOND
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.errors.provider_errors import is_error, unreadable
from umg_grpc.wire.errors.secret_masking import without_secrets
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus
from umg_grpc.wire.video.providers.errors import public_message
from umg_grpc.wire.video.task_error_codes import (
    CONTENT_POLICY_VIOLATION,
    TASK_CANCELLED,
    TASK_EXPIRED,
    TASK_FAILED,
    task_error,
)

Parsed = TypeVar("Parsed")
Text = str | int | float | None
"""Id, code or state in a provider's response. Some providers write these as numbers; None if absent."""

QUEUED_STATE, RUNNING_STATE = pb.VIDEO_TASK_STATE_QUEUED, pb.VIDEO_TASK_STATE_RUNNING
SUCCEEDED_STATE, FAILED_STATE, CANCELLED_STATE = (
    pb.VIDEO_TASK_STATE_SUCCEEDED,
    pb.VIDEO_TASK_STATE_FAILED,
    pb.VIDEO_TASK_STATE_CANCELLED,
)
State: TypeAlias = "pb.VideoTaskState.ValueType"
MAX_WORD_CHARACTERS = 80
_WORD = re.compile(r"[^\w .:-]", re.ASCII)

MODERATED_TEXT = re.compile(
    r"moderation|sensitive|content[ _-]?(?:policy|filter)|policy ?violation|violat|inappropriate|safety"
    r"|risk[ _-]?control|data_?inspection|ip_?infringement|copyright|prohibited|responsible ai|\brai\b"
    r"|审核|风控|敏感|违规",
    re.IGNORECASE,
)
"""Pattern for codes and messages of tasks that failed because their input or output violates the content policy."""


def read(kind: type[Parsed], body: bytes) -> Parsed:
    """Decode a JSON body as a `kind`. Raise UmgError(UPSTREAM_FAILED) if the body does not match the type."""
    try:
        return decode(msgspec.json.Decoder(kind), bytes(body))
    except (ValueError, RecursionError):
        raise unreadable() from None


def read_or(default: Parsed, body: bytes) -> Parsed:
    """Decode a JSON body as a struct of the type of `default`; return `default` if the body does not match the type."""
    try:
        return decode(msgspec.json.Decoder(type(default)), bytes(body))
    except (ValueError, RecursionError):
        return default


def error_of(raw: Raw) -> object:
    """Return the decoded member `error`; None if it states no error (absent, null, an empty object or "")."""
    if not is_error(raw):
        return None
    return any_value(raw)


def text(value: Text) -> str:
    """Return an id, code or state of a provider's response as text; "" if it is absent."""
    return "" if value is None else str(value)


def number(value: Text) -> float | None:
    """Return a number of a provider's response, also if it is written as text; None for any other value."""
    try:
        found = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return found if math.isfinite(found) and 0 <= found <= MAX_COUNT else None


def time_of(value: Text) -> datetime | None:
    """Return the time that a provider writes as a number of Unix seconds or milliseconds; None for any other value."""
    if not isinstance(value, int | float) or value <= 0:
        return None
    seconds = value / 1000 if value > LAST_SECOND // 100 else value
    return datetime.fromtimestamp(seconds, UTC) if seconds <= LAST_SECOND else None


def seconds_used(results: Sequence[ProviderResult]) -> int:
    """Return the total length of all videos in whole seconds, rounded up; 0 if it is not known."""
    lengths = [result.duration_seconds or 0 for result in results if result.variant == pb.VIDEO_VARIANT_VIDEO]
    # a length of 5.041 s is the encoder's rounding to frames, of a video of 5 s
    return math.ceil(round(sum(lengths), 1))


def progressing(state: State, percent: float | None = None) -> ProviderStatus:
    """Return the status of a task that has not ended. `percent`: progress, None if unknown."""
    return ProviderStatus(state=state, progress_percent=_progress(percent))


def unknown_state(word: str, percent: float | None = None, results: Sequence[ProviderResult] = ()) -> ProviderStatus:
    """Return the status of a task whose state the gateway does not recognize, which counts as RUNNING. `word`: the
    state in the provider's words, which is kept for the log; `results`: files that the response has nevertheless.
    """
    unknown = _WORD.sub("?", without_secrets(word))[:MAX_WORD_CHARACTERS] or "none"
    progress = _progress(percent)
    return ProviderStatus(state=RUNNING_STATE, progress_percent=progress, results=tuple(results), unknown_word=unknown)


def succeeded(results: Sequence[ProviderResult], usage: pb.VideoUsage | None = None) -> ProviderStatus:
    """Return the status of a task that succeeded. `usage`: usage that the provider states, None if there is none.
    Without a video in `results` the status has neither results nor usage, since the file may still become readable.
    """
    videos = [result for result in results if result.variant == pb.VIDEO_VARIANT_VIDEO]
    if not videos:
        return ProviderStatus(state=SUCCEEDED_STATE)
    used = pb.VideoUsage(video_count=len(videos), output_seconds=seconds_used(results))
    if usage is not None:
        used.MergeFrom(usage)
    return ProviderStatus(state=SUCCEEDED_STATE, progress_percent=100, results=tuple(results), usage=used)


def failed(message: str, code: str = "", *, kind: str = "") -> ProviderStatus:
    """Return the status of a failed task from the provider's message and code. `kind`: failure code for callers; ""
    chooses `content_policy_violation` if the provider's words mean that, otherwise `task_failed`.
    """
    if not kind:
        kind = CONTENT_POLICY_VIOLATION if MODERATED_TEXT.search(f"{code} {message}") else TASK_FAILED
    return ProviderStatus(state=FAILED_STATE, error=task_error(kind, _reason(message, code)))


def expired(message: str = "") -> ProviderStatus:
    """Return the status of a task that the provider abandoned or no longer stores. `message`: its reason, or ""."""
    message = public_message(message) or "the provider gave the task up; submit it again"
    return ProviderStatus(state=FAILED_STATE, error=task_error(TASK_EXPIRED, message))


def cancelled(message: str = "") -> ProviderStatus:
    """Return the status of a task that was cancelled at the provider. `message`: the provider's reason, "" if there is
    none.
    """
    return ProviderStatus(
        state=CANCELLED_STATE, error=task_error(TASK_CANCELLED, public_message(message) or "the task was cancelled")
    )


def unknown_task() -> UmgError:
    """Return (do not raise) the error OBJECT_NOT_FOUND for a task that the provider does not have."""
    return UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, "the provider does not have the task")


def _progress(percent: float | None) -> int | None:
    return None if percent is None else int(min(max(percent, 0), 99))


def _reason(message: str, code: str) -> str:
    shown = public_message(message) or "the provider reports no reason"
    return f"{shown} ({public_message(code)})" if code and code.lower() not in message.lower() else shown
