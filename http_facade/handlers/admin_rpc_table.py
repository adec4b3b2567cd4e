"""Table of the administration methods: for each HTTP operation the RPC that it calls and the codec of its bodies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from google.protobuf.message import Message

from http_facade.routes import Shape
from umg_grpc.v1 import pb
from umg_grpc.wire import account_api_json, administration_api_json, channel_api_json, model_price_json

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
    values: Mapping[str, int] = field(default_factory=dict)
    """Fields of the request that the path determines, with their values."""


def _account_methods(kind: str, number: int) -> Mapping[Shape, AdminMethod]:
    """Return the rows of one kind of accounts. `kind`: as the names of the operations have it."""
    service, create, update = (
        "AccountService",
        account_api_json.decode_create_account,
        account_api_json.decode_update_account,
    )
    values: Mapping[str, int] = {"kind": number}
    return {
        Shape[f"CREATE_{kind}"]: AdminMethod("CreateAccount", pb.CreateAccountRequest, create, service, values),
        Shape[f"LIST_{kind}S"]: AdminMethod("ListAccounts", pb.ListAccountsRequest, None, service, values),
        Shape[f"GET_{kind}"]: AdminMethod("GetAccount", pb.GetAccountRequest, None, service, values),
        Shape[f"UPDATE_{kind}"]: AdminMethod("UpdateAccount", pb.UpdateAccountRequest, update, service, values),
        Shape[f"CLOSE_{kind}"]: AdminMethod(
            "SetAccountClosed", pb.SetAccountClosedRequest, None, service, {**values, "closed": True}
        ),
        Shape[f"OPEN_{kind}"]: AdminMethod(
            "SetAccountClosed", pb.SetAccountClosedRequest, None, service, {**values, "closed": False}
        ),
    }


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
        Shape.LIST_END_USER_USAGE: AdminMethod("ListEndUserUsage", pb.ListEndUserUsageRequest),
        Shape.GET_CALL_SUMMARY: AdminMethod("GetCallSummary", pb.GetCallSummaryRequest),
        Shape.LIST_REQUESTS: AdminMethod("ListRequestRecords", pb.ListRequestRecordsRequest),
        Shape.GET_REQUEST: AdminMethod("GetRequestRecord", pb.GetRequestRecordRequest),
        Shape.LIST_CHANNELS: AdminMethod("ListChannels", pb.ListChannelsRequest),
        Shape.LIST_ALERTS: AdminMethod("ListAlerts", pb.ListAlertsRequest, service="AlertService"),
        Shape.TEST_ALERT_RECEIVER: AdminMethod(
            "TestAlertReceiver", pb.TestAlertReceiverRequest, service="AlertService"
        ),
        Shape.LIST_CHANNEL_DETAILS: AdminMethod(
            "ListChannelDetails", pb.ListChannelDetailsRequest, service="ChannelService"
        ),
        Shape.CHECK_CHANNEL: AdminMethod(
            "CheckChannel", pb.CheckChannelRequest, channel_api_json.decode_check_channel, "ChannelService"
        ),
        Shape.UPDATE_CHANNEL: AdminMethod(
            "UpdateChannel", pb.UpdateChannelRequest, channel_api_json.decode_update_channel, "ChannelService"
        ),
        Shape.LIST_MODEL_PRICES: AdminMethod("ListModelPrices", pb.ListModelPricesRequest, service="ModelPriceService"),
        Shape.UPDATE_MODEL_PRICE: AdminMethod(
            "UpdateModelPrice",
            pb.UpdateModelPriceRequest,
            model_price_json.decode_update_model_price,
            "ModelPriceService",
        ),
        **_account_methods("ORGANIZATION", pb.ACCOUNT_KIND_ORGANIZATION),
        **_account_methods("PROJECT", pb.ACCOUNT_KIND_PROJECT),
        Shape.CREATE_USER: AdminMethod(
            "CreateUser", pb.CreateUserRequest, account_api_json.decode_create_user, "UserService"
        ),
        Shape.LIST_USERS: AdminMethod("ListUsers", pb.ListUsersRequest, None, "UserService"),
        Shape.GET_USER: AdminMethod("GetUser", pb.GetUserRequest, None, "UserService"),
        Shape.GET_CALLER: AdminMethod("GetCaller", pb.GetCallerRequest, None, "UserService"),
        Shape.UPDATE_USER: AdminMethod(
            "UpdateUser", pb.UpdateUserRequest, account_api_json.decode_update_user, "UserService"
        ),
        Shape.LIST_SESSIONS: AdminMethod("ListSessions", pb.ListSessionsRequest, None, "UserService"),
        Shape.END_SESSION: AdminMethod("EndSession", pb.EndSessionRequest, None, "UserService"),
        Shape.LIST_AUDIT_EVENTS: AdminMethod("ListAuditEvents", pb.ListAuditEventsRequest, None, "AuditService"),
        Shape.LIST_TASKS: AdminMethod("ListTasks", pb.ListTasksRequest, None, "TaskService"),
        Shape.GET_TASK: AdminMethod("GetTask", pb.GetTaskRequest, None, "TaskService"),
        Shape.GET_CONFIG: AdminMethod("GetConfig", pb.GetConfigRequest, None, "ConfigService"),
        Shape.REDELIVER_CALLBACK: AdminMethod("RedeliverCallback", pb.RedeliverCallbackRequest, None, "TaskService"),
    }
)
