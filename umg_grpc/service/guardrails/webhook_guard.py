"""Guard that calls a URL of the operator: with the messages of `umg.v1.GuardService` as JSON."""

from google.protobuf import json_format

from umg_grpc.base.errors import UmgError
from umg_grpc.config.config_values import GuardRow
from umg_grpc.service.guardrails.guard_interface import MAX_RESPONSE_BYTES, Guard, GuardFailedError
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.http1.request import OutgoingRequest
from umg_grpc.v1 import pb


class WebhookGuard(Guard):
    """Guard that calls a URL."""

    def __init__(self, row: GuardRow, client: Client) -> None:
        super().__init__(row)
        self._client = client
        self._headers = {"Content-Type": "application/json", **row.headers}
        self._deadlines = Deadlines.all_of(row.timeout)

    async def check(self, request: pb.CheckRequest) -> pb.CheckResponse:
        body = json_format.MessageToJson(request, preserving_proto_field_name=True, indent=None).encode()
        call = OutgoingRequest(self.row.address, self._headers, body, self._deadlines, max_bytes=MAX_RESPONSE_BYTES)
        try:
            fetched = await self._client.fetch(call)
        except UmgError as error:
            raise GuardFailedError(f"{error.name}: {error.message}") from None
        if fetched.status != 200:
            raise GuardFailedError(f"HTTP status {fetched.status}")
        try:
            return json_format.Parse(fetched.body, pb.CheckResponse(), ignore_unknown_fields=True)
        except (json_format.ParseError, UnicodeDecodeError) as error:
            raise GuardFailedError(f"no response of a guard: {str(error)[:200]}") from None
