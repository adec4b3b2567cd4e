"""gRPC server of the gateway: its listener, its health service and its shutdown."""

import asyncio
from typing import Self

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from umg_grpc.base.batch_threads import batch_threads
from umg_grpc.base.inprocess_channel import HandlerTable, InProcessServer
from umg_grpc.process.service_factory import SERVICE_NAMES, Service
from umg_grpc.store.repeated_background_tasks import Background

LAST_WORDS_SECONDS = 5.0  # longest time to send its error to each call that outlasts the drain
MAX_CONNECTIONS = 8192
"""Maximum number of gRPC connections of a process. Further ones are closed. A client needs one for all of its calls."""
CHECK_SECONDS = 1.0
"""Time between two checks whether the process should get calls."""
MAX_STREAMS = 1 << 16
"""Most calls on a connection, above the limit of the load shedder: it rejects calls that clients would queue."""


class GrpcFace:
    """gRPC server that serves the gateway's services, health checks and reflection over a socket."""

    def __init__(
        self, server: grpc.aio.Server, health_servicer: health.aio.HealthServicer, port: int, service: Service
    ) -> None:
        self.port = port
        self._service = service
        self._server = server
        self._health = health_servicer
        self._watch: Background | None = None
        self._is_fit = True

    @classmethod
    def bind(
        cls,
        service: Service,
        address: str,
        *,
        message_limit: int,
        share_port: bool = False,
        credentials: grpc.ServerCredentials | None = None,
    ) -> Self:
        """Bind an address (HOST:PORT), and return the server; calls wait until `start`. `message_limit`: bytes of the
        largest request; `share_port`: several processes may serve one port; without it, a second process fails;
        `credentials`: for TLS. Raise OSError if the address cannot be bound.
        """
        methods = InProcessServer([service.interceptor])
        service.register(methods)
        health_servicer = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(health_servicer, methods)
        reflection.enable_server_reflection([*SERVICE_NAMES, health.SERVICE_NAME, reflection.SERVICE_NAME], methods)
        try:
            with batch_threads():
                server = grpc.aio.server(handlers=[HandlerTable(methods)], options=_options(message_limit, share_port))
                if credentials is None:
                    port = server.add_insecure_port(address)
                else:
                    port = server.add_secure_port(address, credentials)
        except RuntimeError as error:
            reason = str(error).partition("; set GRPC_VERBOSITY")[0]
            raise OSError(f"cannot listen on {address} for gRPC: {reason}") from None
        return cls(server, health_servicer, port, service)

    async def start(self) -> None:
        """Start to serve calls."""
        with batch_threads():
            await self._server.start()
        await self._report()
        self._watch = Background("reporting gRPC health", self._check, every=CHECK_SECONDS)
        self._watch.wake()

    async def announce_drain(self) -> None:
        """Report NOT_SERVING to health checks, so that load balancers send no new calls. Calls are still served."""
        await self._health.enter_graceful_shutdown()

    async def stop(self, drain: float) -> None:
        """Stop accepting calls, and wait up to `drain` seconds for the calls in flight."""
        await self.announce_drain()
        if self._watch is not None:
            await self._watch.aclose(CHECK_SECONDS)
        cut_off_timer = asyncio.get_running_loop().call_later(drain, self._service.cut_off)
        await self._server.stop(drain + LAST_WORDS_SECONDS)
        cut_off_timer.cancel()

    async def _check(self) -> None:
        if (is_fit := not self._service.unfit()) != self._is_fit:
            self._is_fit = is_fit
            await self._report()

    async def _report(self) -> None:
        states = health_pb2.HealthCheckResponse
        for name in ["", *SERVICE_NAMES, health.SERVICE_NAME]:
            await self._health.set(name, states.SERVING if self._is_fit else states.NOT_SERVING)


def _options(message_limit: int, share_port: bool, connections: int = MAX_CONNECTIONS) -> list[tuple[str, int]]:
    return [
        ("grpc.so_reuseport", int(share_port)),
        ("grpc.max_receive_message_length", message_limit),
        ("grpc.max_send_message_length", -1),  # a response may be larger than a request
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),  # a client that pings more often is disconnected
        ("grpc.max_concurrent_streams", MAX_STREAMS),
        ("grpc.server_handshake_timeout_ms", 10_000),
        ("grpc.max_allowed_incoming_connections", connections),  # those whose handshake never ends too
    ]
