"""State of a task from the response to its query. The fields of the protocol's vendor are read first; if they do not
suffice, fields of other vendors, which relays pass on.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.task_state_words import ALL_PROTOCOLS, Meaning, meaning_of, own_meaning
from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import decode_base64, is_data_url, parse_data_url
from umg_grpc.wire.errors.error_classification import ProviderError, Table, stated_status
from umg_grpc.wire.errors.provider_errors import is_ok, read_error, unreadable
from umg_grpc.wire.relay_task_responses import RelayedTask, read_relayed
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus
from umg_grpc.wire.video.providers.errors import is_unknown, refused, refused_submission
from umg_grpc.wire.video.providers.response_decoding import (
    QUEUED_STATE,
    RUNNING_STATE,
    Text,
    cancelled,
    expired,
    failed,
    number,
    progressing,
    succeeded,
    text,
    unknown_state,
    unknown_task,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTask:
    """State of a task in the fields of the protocol's vendor. A fact that the fields do not contain has its default."""

    word: str = ""
    results: Sequence[ProviderResult] = ()
    usage: pb.VideoUsage | None = None
    message: str = ""
    code: str = ""
    progress: Text = None


_OF_SERVER = re.compile(r"\b50\d\b|internal|server|time[d_ -]?out|unavailable|busy|overload|try again", re.IGNORECASE)
"""Pattern for error codes and messages which mean that the server failed, not the task."""
NOTHING_OWN = OwnTask()
NOTHING_RELAYED = RelayedTask()
VIDEO_TYPE = "video/mp4"
_NEEDS_KEY = re.compile(r"/videos/[^/?#]+/content(?:[?#]|$)")
"""Pattern of a URL at a relay that only its key can read (tigerowo/infinite-canvas#39)."""


def status_of(protocol: str, body: bytes, task_id: str, own: OwnTask = NOTHING_OWN) -> ProviderStatus | UmgError:
    """Return the status of a task, or the error of its query. `body`: response to the query, or the task's item in it.
    A relay may use another vendor's word, which then has that vendor's meaning. A file or a reason may be in any field.
    """
    meaning = own_meaning(own.word, protocol)
    if _is_complete(own, meaning):
        return _status(own, own.word, meaning, NOTHING_RELAYED)
    relayed = read_relayed(body, protocol, task_id)
    if meaning is not None:
        return _status(own, own.word, meaning, relayed)
    word = relayed.word or own.word
    if not word and not files_of(relayed):
        return _error_without_state(protocol, body, relayed) if relayed.has_error else unreadable()
    return _status(own, word, relayed.meaning if word else "done", relayed)


def _is_complete(own: OwnTask, meaning: Meaning | None) -> bool:
    if meaning == "done":
        return bool(own.results)
    if meaning in ("failed", "cancelled", "expired"):
        return bool(own.message)
    return meaning is not None


def _status(own: OwnTask, word: str, meaning: Meaning | None, relayed: RelayedTask) -> ProviderStatus | UmgError:
    progress = percent_of(own.progress if own.progress is not None else relayed.progress)
    message, files = own.message or relayed.reason, own.results or files_of(relayed)
    match meaning:
        case "queued":
            return progressing(QUEUED_STATE, progress)
        case "running":
            return progressing(RUNNING_STATE, progress)
        case "done":
            return succeeded(files, own.usage)
        case "failed":
            return failed(message, own.code or relayed.code)
        case "cancelled":
            return cancelled(message)
        case "expired":
            return expired(message)
        case "lost":
            return unknown_task()
        case None:
            return unknown_state(word, progress, files)
        case unhandled:
            assert_never(unhandled)


def files_of(relayed: RelayedTask) -> list[ProviderResult]:
    """Return the files whose URLs or bytes the response contains; files that cannot be decoded are left out."""
    seconds = number(relayed.seconds)
    found = [_file_at(address, seconds) for address in relayed.addresses]
    found += [_file_of(text, seconds) for text in relayed.encoded]
    return [file for file in found if file is not None]


def _file_at(address: str, seconds: float | None) -> ProviderResult | None:
    if is_data_url(address):
        try:
            mime_type, data = parse_data_url(address, "url")
        except UmgError:
            return None
        return ProviderResult(data=data, mime_type=mime_type or VIDEO_TYPE, duration_seconds=seconds)
    if address.startswith("/") or _NEEDS_KEY.search(address):
        return ProviderResult(needs_key=address, duration_seconds=seconds)
    return ProviderResult(url=address, duration_seconds=seconds)


def _file_of(text: str, seconds: float | None) -> ProviderResult | None:
    try:
        return ProviderResult(data=decode_base64(text, "url"), duration_seconds=seconds)
    except UmgError:
        return None


def percent_of(written: Text) -> float | None:
    """Return a progress in percent from a number, a text with `%`, or a fraction below 1; None if unreadable."""
    found = number(written.strip().removesuffix("%") if isinstance(written, str) else written)
    return round(found * 100, 1) if found is not None and 0 < found < 1 else found


def created_id(protocol: str, body: bytes, own: str, headers: Mapping[str, str], table: Table) -> str:
    """Return the provider's task id from a successful response to a submission. `own`: id in the field of the
    protocol's vendor, "" if there is none. Raise UmgError if the task has failed already or there is no id. Its
    `failure` is AMBIGUOUS unless the response contains a failure or an error.
    """
    refuse_failed(protocol, body, headers, table)
    if own:
        return own
    relayed = read_relayed(body, protocol)
    if relayed.id:
        return relayed.id
    if relayed.has_error:
        raise refused_submission(400, headers, body, _error_of(body, relayed), table)
    if relayed.request_id:
        return relayed.request_id
    raise unreadable()


def refuse_failed(protocol: str, body: bytes, headers: Mapping[str, str], table: Table) -> None:
    """Raise UmgError if a successful response to a submission has a word that means failure. Protocols whose vendors
    report errors with a successful status call this first, since an error alone may leave the outcome open.
    """
    relayed = read_relayed(body, protocol)
    if is_failure(relayed.word):
        error = _error_of(body, relayed)
        error.message = relayed.reason  # not a message of the envelope
        raise failed_at_creation(headers, error, table)


def is_failure(word: str) -> bool:
    """Return whether a state in the response to a submission means failure; `unknown` is `vidC`'s for old tasks."""
    return meaning_of(word, ALL_PROTOCOLS) in ("failed", "cancelled", "expired")


def failed_at_creation(headers: Mapping[str, str], error: ProviderError, table: Table = ()) -> UmgError:
    """Return the error for a submission whose response has a successful HTTP status but states that the task failed.
    The task does not run, so another channel may get it. It counts as rejected, unless the error means a failed server.
    """
    error.message = error.message or "the task failed at its creation, without a reason"
    found = refused(_status_of_words(error), headers, error, table)
    return found.with_failure(Failure.TRANSIENT) if found.failure is Failure.AMBIGUOUS else found


def is_lost(protocol: str, status: int, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether a query's response means that the provider does not have the task: by status 404 or a code."""
    return is_unknown(status, headers, body) or is_lost_code(protocol, status, body)


def is_lost_code(protocol: str, status: int, body: bytes) -> bool:
    """Return whether a failed query has a code by which relays state that they do not have the task."""
    return status >= 400 and meaning_of(text(read_error(body).code), protocol) == "lost"


def _error_without_state(protocol: str, body: bytes, relayed: RelayedTask) -> UmgError:
    if meaning_of(relayed.code, protocol) == "lost":
        return unknown_task()
    error = _error_of(body, relayed)
    return refused(_status_of_words(error), {}, error)


def _status_of_words(error: ProviderError) -> int:
    status = stated_status(error)
    is_refusal = status == 500 and not _OF_SERVER.search(f"{error.codes} {error.message}")
    return 400 if is_refusal else status


def _error_of(body: bytes, relayed: RelayedTask) -> ProviderError:
    error = read_error(body)
    error.message = error.message or relayed.reason
    error.code = relayed.code if error.code is None or is_ok(error.code) else error.code
    return error
