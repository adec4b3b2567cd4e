"""gRPC connection of a command to a running gateway, with a caller's API key."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from umg_grpc.access.secret_files import BOOTSTRAP_FILE
from umg_grpc.base.grpc_proxies import proxy_options
from umg_grpc.base.shell_quoting import shell_word
from umg_grpc.cli.common_flags import DATA_FOLDER, ConfigFlag, DataFlag

if TYPE_CHECKING:
    import grpc

DEFAULT_ADDRESS = "127.0.0.1:50051"
GRPC_OPTIONS = (("grpc.max_receive_message_length", -1),)
CONNECT_SECONDS = 10

GrpcFlag = Annotated[str, typer.Option("--grpc", metavar="HOST:PORT", help="The gateway's gRPC address.")]
KeyFlag = Annotated[str, typer.Option("--key", envvar="UMG_API_KEY", help="Without it the bootstrap key in --data.")]
TlsFlag = Annotated[bool, typer.Option("--tls", help="Connect with TLS.")]
CaFlag = Annotated[
    Path | None, typer.Option("--ca", metavar="FILE", help="Connect with TLS; the authorities to trust, in PEM.")
]


@dataclass(frozen=True)
class GrpcTarget:
    """Address, TLS settings and API key with which a command calls a gateway."""

    address: str
    key: str
    tls: bool
    authorities: bytes | None
    """Certificates to trust, in PEM; None for those of the system."""
    flags: str = ""
    """Flags that select the same gateway, each after a space; none for the default."""

    @property
    def credentials(self) -> tuple[tuple[str, str], ...]:
        """Metadata of gRPC calls, which contains the API key."""
        return (("authorization", f"Bearer {self.key}"),)

    @asynccontextmanager
    async def opened(self) -> "AsyncGenerator[grpc.aio.Channel, None]":
        """Yield a channel to the gateway, on which answers of any size can be received."""
        from grpc import ssl_channel_credentials
        from grpc.aio import insecure_channel, secure_channel

        options = (*GRPC_OPTIONS, *proxy_options(self.address))
        if self.tls:
            async with secure_channel(self.address, ssl_channel_credentials(self.authorities), options) as channel:
                await self._connect(channel)
                yield channel
        else:
            async with insecure_channel(self.address, options) as channel:
                await self._connect(channel)
                yield channel

    async def _connect(self, channel: "grpc.aio.Channel") -> None:
        """Wait until the gateway is connected. Raise UmgError(UNAVAILABLE), which states the remedy."""
        import asyncio

        from grpc import ChannelConnectivity

        from umg_grpc.base.errors import UmgError
        from umg_grpc.v1 import pb

        state = channel.get_state(try_to_connect=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(CONNECT_SECONDS):
                while state not in {ChannelConnectivity.READY, ChannelConnectivity.TRANSIENT_FAILURE}:
                    await channel.wait_for_state_change(state)
                    state = channel.get_state(try_to_connect=True)
        if state is not ChannelConnectivity.READY:
            tried = f"{self.address} {'with' if self.tls else 'without'} TLS"
            message = (
                f"no gateway answers at {tried}; start one with `umg serve`, or name the gRPC address of another with "
                "--grpc HOST:PORT"
            )
            raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message)


def grpc_target(
    grpc: GrpcFlag = DEFAULT_ADDRESS,
    key: KeyFlag = "",
    *,
    tls: TlsFlag = False,
    ca: CaFlag = None,
    config: ConfigFlag = None,
    data: DataFlag = DATA_FOLDER,
) -> GrpcTarget:
    """Return the target that a command's flags describe. Raise BadParameter for an unusable key or file."""
    key_file = data / BOOTSTRAP_FILE
    if not key and not key_file.is_file():
        raise typer.BadParameter(
            f"give one, or set UMG_API_KEY; `umg serve` creates {key_file}, which does not exist", param_hint="--key"
        )
    secret = key or key_file.read_text().strip()
    if not (secret.isascii() and secret.isprintable()):
        raise typer.BadParameter("a key is printable ASCII", param_hint="--key")
    try:
        authorities = ca.read_bytes() if ca is not None else None
    except OSError as error:
        raise typer.BadParameter(f"{ca}: {error.strerror}", param_hint="--ca") from None
    flags = "" if grpc == DEFAULT_ADDRESS else f" --grpc {shell_word(grpc)}"
    flags += f" --ca {shell_word(str(ca))}" if ca is not None else " --tls" if tls else ""
    return GrpcTarget(grpc, secret, tls or ca is not None, authorities, flags)
