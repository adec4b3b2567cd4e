"""Options of `umg serve` as data, importable without the modules that serve."""

from dataclasses import dataclass
from pathlib import Path

from umg_grpc.config.network_addresses import Address
from umg_grpc.process.config_loading import ConfigSource
from umg_grpc.process.usable_cores import usable_cores

HTTP_FACE, GRPC_FACE = "http", "grpc"
SERVED_FACES = (HTTP_FACE, GRPC_FACE)
AUTO_WORKERS = "auto"
"""Value of `--workers` for one worker on each core that the process may use."""
MAX_WORKERS = 256


@dataclass(frozen=True)
class Options:
    """Options of `umg serve`: addresses, data directory, number of workers, served protocols."""

    config: ConfigSource
    http: Address
    grpc: Address
    data: Path
    faces: tuple[str, ...] = SERVED_FACES
    workers: int = 1
    workers_fit_cores: bool = False
    """Whether `workers` is the number of cores, not one of the command line."""
    share_ports: bool = False  # True for a worker process, which shares its ports with the others
    metrics: Address | None = None
    """For a worker process: the address of `/metrics`, with the actual port instead of port 0."""
    replace_bootstrap_key: bool = False

    @property
    def flags(self) -> dict[str, str]:
        """Flags of the command line that apply to the process, with their values, also defaults."""
        return {
            **({} if self.config is None else {"--config": str(self.config)}),
            "--http": str(self.http),
            "--grpc": str(self.grpc),
            "--data": str(self.data),
            "--faces": ",".join(self.faces),
        }

    @property
    def exposed(self) -> tuple[Address, ...]:
        """HTTP and gRPC addresses to which other machines can connect."""
        bound = ((HTTP_FACE, self.http), (GRPC_FACE, self.grpc))
        return tuple(address for face, address in bound if face in self.faces and not address.is_loopback)


def worker_count(text: str) -> int:
    """Return the number of workers that the value of `--workers` means. Raise ValueError for an invalid value."""
    if text == AUTO_WORKERS:
        return min(usable_cores(), MAX_WORKERS)
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_WORKERS:
        raise ValueError(
            f"--workers: {text!r} is no number from 1 to {MAX_WORKERS}; `{AUTO_WORKERS}` is one for each usable core"
        )
    return int(text)
