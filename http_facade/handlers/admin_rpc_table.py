"""Table of the administration methods: for each HTTP operation the RPC that it calls and the codec of its bodies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from google.protobuf.message import Message

from http_facade.routes import Shape
from umg_grpc.v1 import pb
from umg_grpc.wire import administration_api_json

SELF_PLACE = "self"
"""Id in a path that means the calling key itself."""


@dataclass(frozen=True)
class AdminMethod:
    """Row of the table: an RPC of an administration service, its request type, and the decoder of its JSON body."""

    name: str
    request: type[Message]
    decode: Callable[[bytes], Message] | None = None
    """Function that reads a body; None for requests in the query of the URL."""
    service: str = "AdminService"
    """Service of the RPC."""


ADMIN_METHODS: Mapping[Shape, AdminMethod] = MappingProxyType(
    {
        Shape.CREATE_KEY: AdminMethod("CreateKey", pb.CreateKeyRequest, administration_api_json.decode_create),
        Shape.LIST_KEYS: AdminMethod("ListKeys", pb.ListKeysRequest),
        Shape.GET_KEY: AdminMethod("GetKey", pb.GetKeyRequest),
        Shape.UPDATE_KEY: AdminMethod("UpdateKey", pb.UpdateKeyRequest, administration_api_json.decode_update),
        Shape.ROTATE_KEY: AdminMethod("RotateKey", pb.RotateKeyRequest, administration_api_json.decode_rotate),
        Shape.REVOKE_KEY: AdminMethod("RevokeKey", pb.RevokeKeyRequest),
        Shape.GET_USAGE: AdminMethod("GetUsage", pb.GetUsageRequest),
        Shape.LIST_USAGE: AdminMethod("ListUsage", pb.ListUsageRequest),
        Shape.LIST_REQUESTS: AdminMethod("ListRequestRecords", pb.ListRequestRecordsRequest),
        Shape.GET_REQUEST: AdminMethod("GetRequestRecord", pb.GetRequestRecordRequest),
        Shape.LIST_CHANNELS: AdminMethod("ListChannels", pb.ListChannelsRequest),
        Shape.LIST_ALERTS: AdminMethod("ListAlerts", pb.ListAlertsRequest, service="AlertService"),
        Shape.TEST_ALERT_RECEIVER: AdminMethod(
            "TestAlertReceiver", pb.TestAlertReceiverRequest, service="AlertService"
        ),
    }
)
