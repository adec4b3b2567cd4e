"""Files with the last model list of each provider, for starts of the gateway at which the provider is unreachable."""

import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec
from google.protobuf.message import DecodeError
from msgspec import Struct

from umg_grpc.base.lazy_logger import LazyLogger
from umg_grpc.base.provider_failure import ProviderFailure
from umg_grpc.v1 import pb

LISTS_DIRECTORY = "model-lists"
HASH_CHARACTERS = 12

logger = LazyLogger(__name__)


class ListFailure(Struct, frozen=True):
    """Reason why the model list of an account could not be read."""

    reason: str
    facts: ProviderFailure | None = None
    """Facts about the failed call; None for a list that was read but is empty."""


_FAILURE = msgspec.json.Decoder(ListFailure)


class ModelListFiles:
    """Model lists of providers in the data directory: one file for each pair of channel and provider address."""

    def __init__(self, data: Path) -> None:
        self._directory = data / LISTS_DIRECTORY

    def read(self, channel: str, address: str) -> Sequence[pb.Model] | None:
        """Return a channel's stored list; None if there is none for this address (base URL), or it is damaged."""
        try:
            return pb.ListModelsResponse.FromString(self._path(channel, address).read_bytes()).models
        except (OSError, DecodeError):
            return None

    def write(self, channel: str, address: str, models: Sequence[pb.Model]) -> None:
        """Replace the stored model list of a channel and an address (base URL). A write error is only logged."""
        path = self._path(channel, address)
        temporary = path.with_suffix(f".{os.getpid()}")
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.write_bytes(pb.ListModelsResponse(models=models).SerializeToString())
            temporary.replace(path)
        except OSError as error:
            logger.warning("the model list of a channel cannot be stored", channel=channel, reason=str(error))

    def written_at(self, channel: str, address: str) -> float | None:
        """Return the Unix time at which a process wrote the list last; None without a list."""
        try:
            return self._path(channel, address).stat().st_mtime
        except OSError:
            return None

    def try_lock(self, source: str) -> int | None:
        """Lock a source. Return the descriptor of its lock file, whose closing releases it; None if another process
        reads its lists now. `source`: text for the provider and the account; only its hash is stored. Raise OSError.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._source_path(source, "lock"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def write_failure(self, source: str, failure: ListFailure | None) -> float | None:
        """Record for other processes that the lists of a source could not be read or, with None, that they could.
        Return the Unix time of the record; None without a record.
        """
        path = self._source_path(source, "failed")
        with suppress(OSError):
            if failure is not None:
                path.write_bytes(msgspec.json.encode(failure))
                return path.stat().st_mtime
            path.unlink(missing_ok=True)
        return None

    def failure(self, source: str) -> tuple[float, ListFailure] | None:
        """Return (Unix time, reason) of the last failure at a source; None if the last read succeeded."""
        path = self._source_path(source, "failed")
        try:
            return path.stat().st_mtime, _FAILURE.decode(path.read_bytes())
        except (OSError, ValueError):  # none, or one of another version
            return None

    def _source_path(self, source: str, suffix: str) -> Path:
        return self._directory / f"{sha256(source.encode()).hexdigest()[:HASH_CHARACTERS]}.{suffix}"

    def _path(self, channel: str, address: str) -> Path:
        return self._directory / f"{channel}-{sha256(address.encode()).hexdigest()[:HASH_CHARACTERS]}.pb"
