"""File with the last failure of each channel and model. All processes write it, and `umg models` reads it. Only
operators of the machine can read the file: `/metrics`, which needs no key by default, has only kind and status.
"""

import asyncio
import fcntl
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from umg_grpc.base.provider_failure import FailureKind, ProviderFailure
from umg_grpc.store.repeated_background_tasks import Background

FILE_NAME = "channel_failures.json"
MAX_FAILURES = 200
"""Maximum number of failures in the file; the oldest are removed."""
KEEP_SECONDS = 24 * 60 * 60
GATHER_SECONDS = 0.2
"""Seconds for which failures are collected before they are written to the file together."""
CLOSE_SECONDS = 2.0


Key = tuple[str, str]
"""Channel and the provider's model id."""


class LastFailure(Struct, frozen=True):
    """Last failure of a channel for one model of its provider, and the time of the failure."""

    channel: str
    time: float
    """Unix time."""
    facts: ProviderFailure

    @property
    def key(self) -> Key:
        """Channel and model, which are unique in the file."""
        return self.channel, self.facts.model


_FAILURES = msgspec.json.Decoder(list[LastFailure])


class ChannelFailures:
    """Writer of the last failures of channels to a file, from `start` to `aclose`; it keeps others' failures."""

    def __init__(self, data: Path, now: Callable[[], float] = time.time) -> None:
        self._data = data
        self._path = data / FILE_NAME
        self._now = now
        self._pending: dict[Key, LastFailure | None] = {}
        """Failures to be written, None for one to be removed."""
        self._written_at = 0.0
        self.unknown_models: dict[Key, float] = {}
        """Channels and models that the providers have refused as unknown, as far as this process knows -> Unix time."""

    def start(self) -> None:
        """Start the background task that writes recorded failures to the file."""
        self._background = Background("write the failures of channels", self._gather_and_write)

    async def aclose(self) -> None:
        """Write the recorded failures, and stop. Write errors are ignored: the directory may be deleted already."""
        await self._background.aclose(CLOSE_SECONDS)
        with suppress(OSError):
            await self._write_pending()

    def read(self) -> list[LastFailure]:
        """Return the failures in the file, latest first; empty without a file. Raise OSError if it is unreadable."""
        return read_failures(self._data)

    def record(self, channel: str, facts: ProviderFailure) -> None:
        """Queue a failure to be written. A rejection of an invalid request is ignored: no channel is at fault."""
        if facts.kind is FailureKind.REQUEST:
            return
        failure = LastFailure(channel, self._now(), facts)
        if facts.kind is FailureKind.WRONG_MODEL and len(self.unknown_models) < MAX_FAILURES:
            self.unknown_models[failure.key] = failure.time
        self._queue(failure.key, failure)

    def forget_unknown(self, channel: str, model: str) -> None:
        """Remove the failure of a model that was refused as unknown and that the provider has served since."""
        key = channel, model
        self.unknown_models.pop(key, None)
        self._queue(key, None)

    async def read_unknown_models(self) -> frozenset[Key]:
        """Return the channels and models that providers have refused as unknown in the last day, in any process."""
        with suppress(OSError):
            if (written_at := _written_at(self._path)) != self._written_at:
                stored = {each.key: each for each in await asyncio.to_thread(self.read)}
                self._written_at = written_at
                found = [each for each in (stored | self._pending).values() if each is not None]
                unknown = (each for each in found if each.facts.kind is FailureKind.WRONG_MODEL)
                self.unknown_models = {each.key: each.time for each in unknown}
        oldest = self._now() - KEEP_SECONDS
        return frozenset(key for key, moment in self.unknown_models.items() if moment >= oldest)

    def _queue(self, key: Key, failure: LastFailure | None) -> None:
        if key in self._pending or len(self._pending) < MAX_FAILURES:
            self._pending[key] = failure
            self._background.wake()

    async def _gather_and_write(self) -> None:
        await asyncio.sleep(GATHER_SECONDS)
        await self._write_pending()

    async def _write_pending(self) -> None:
        pending, self._pending = self._pending, {}
        if pending:
            await asyncio.to_thread(self._merge, pending)

    def _merge(self, pending: Mapping[Key, LastFailure | None]) -> None:
        with os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            merged: dict[Key, LastFailure | None] = {failure.key: failure for failure in _decoded(file)}
            merged.update(pending)
            oldest = self._now() - KEEP_SECONDS
            kept = (each for each in merged.values() if each is not None and each.time >= oldest)
            recent = sorted(kept, key=lambda each: each.time, reverse=True)
            file.seek(0)
            file.truncate()
            file.write(msgspec.json.encode(recent[:MAX_FAILURES]))


def read_failures(data: Path) -> list[LastFailure]:
    """Return the failures in the data directory, latest first; empty without a file. Raise OSError if unreadable."""
    try:
        with (data / FILE_NAME).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            return _decoded(file)
    except FileNotFoundError:
        return []


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _decoded(file: BinaryIO) -> list[LastFailure]:
    try:
        return _FAILURES.decode(file.read())
    except ValueError:
        return []
