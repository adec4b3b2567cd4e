"""Files with the last model list of each provider, for starts of the gateway at which the provider is unreachable."""

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from google.protobuf.message import DecodeError

from umg_grpc.base.lazy_logger import LazyLogger
from umg_grpc.v1 import pb

DIRECTORY = "model-lists"
HASH_CHARACTERS = 12

logger = LazyLogger(__name__)


class ModelListFiles:
    """Model lists of providers in files of the data directory, one file for each pair of channel and provider
    address.
    """

    def __init__(self, data: Path) -> None:
        self._directory = data / DIRECTORY

    def read(self, channel: str, address: str) -> Sequence[pb.Model] | None:
        """Return the stored model list of a channel; None if there is none for this address, or if the file is damaged.
        `address`: base URL of the provider.
        """
        try:
            return pb.ListModelsResponse.FromString(self._path(channel, address).read_bytes()).models
        except (OSError, DecodeError):
            return None

    def write(self, channel: str, address: str, models: Sequence[pb.Model]) -> None:
        """Replace the stored model list of a channel and an address (base URL of the provider). A write error is only
        logged.
        """
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
