"""Guard that calls a service of the operator over gRPC (`umg.v1.GuardService`)."""

import grpc

from umg_grpc.config.config_values import GuardRow
from umg_grpc.service.guardrails.guard_interface import Guard, GuardFailedError
from umg_grpc.v1 import pb, rpc


class GrpcGuard(Guard):
    """Guard that calls a service over gRPC."""

    def __init__(self, row: GuardRow, channel: grpc.aio.Channel) -> None:
        super().__init__(row)
        self._stub = rpc.GuardServiceStub(channel)
        self._metadata = tuple((name.lower(), value) for name, value in row.headers.items())

    async def check(self, request: pb.CheckRequest) -> pb.CheckResponse:
        try:
            return await self._stub.Check(request, metadata=self._metadata, timeout=self.row.timeout)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise TimeoutError from None
            raise GuardFailedError(f"{error.code().name}: {error.details()}") from None
