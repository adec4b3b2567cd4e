"""Files with each provider's last model list, in the data directory: a start while the provider is unreachable serves
them.
"""

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from google.protobuf.message import DecodeError

from umg_grpc.lazy_logger import LazyLogger
from umg_grpc.v1 import pb

DIRECTORY = "model-lists"
HASH_CHARACTERS = 12

logger = LazyLogger(__name__)


class ModelListFiles:
    """Files with model lists, one for each channel and address."""

    def __init__(self, data: Path) -> None:
        self._directory = data / DIRECTORY

    def read(self, channel: str, address: str) -> Sequence[pb.Model] | None:
        """Return the last list of a channel at an address; None without one, or if the file is damaged."""
        try:
            return pb.ListModelsResponse.FromString(self._path(channel, address).read_bytes()).models
        except (OSError, DecodeError):
            return None

    def write(self, channel: str, address: str, models: Sequence[pb.Model]) -> None:
        """Replace the list of a channel at an address. Log a directory that cannot be written."""
        path = self._path(channel, address)
        temporary = path.with_suffix(f".{os.getpid()}")
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.write_bytes(pb.ListModelsResponse(models=models).SerializeToString())
            temporary.replace(path)
        except OSError as error:
            logger.warning("the model list of a channel cannot be stored", channel=channel, reason=str(error))

    def _path(self, channel: str, address: str) -> Path:
        return self._directory / f"{channel}-{sha256(address.encode()).hexdigest()[:HASH_CHARACTERS]}.pb"
