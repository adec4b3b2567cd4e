"""Client of the administration API under `/admin/v1`, for tests: messages as its JSON and queries, and back."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import quote

import aiohttp
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from http_facade.handlers.admin_rpc_table import ADMIN_METHODS, SELF_PLACE, AdminMethod
from http_facade.routes import ROUTE_TABLE
from umg_grpc.cli.admin_client import CommandError, method_name
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names, fields_of, member_name, to_json

MessageT = TypeVar("MessageT", bound=Message)


class HttpAdmin:
    """Client of the service by its paths."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url
        self._headers = {"authorization": f"Bearer {key}"}

    async def call(self, request: Message, kind: type[MessageT]) -> MessageT:
        """Return the response to a request. Raise CommandError with the message of an error."""
        async with aiohttp.ClientSession(self._url) as session:
            status, body = await send(session, request, self._headers)
        if status != 200:
            raise CommandError(body["error"]["message"])
        return from_json(kind, body)


async def send(
    session: aiohttp.ClientSession, request: Message, headers: Mapping[str, str]
) -> tuple[int, dict[str, Any]]:
    """Send a request to its path. Return status and body of the response."""
    route = next(
        row for row in ROUTE_TABLE if row.shape in ADMIN_METHODS and is_meant(ADMIN_METHODS[row.shape], request)
    )
    path, in_path = route.name, [name for name in fields_of(type(request)) if f"{{{name}}}" in route.name]
    for name in in_path:
        path = path.replace(f"{{{name}}}", quote(getattr(request, name) or SELF_PLACE, safe=""))
    method = ADMIN_METHODS[route.shape]
    in_body = method.decode is not None
    query = [] if in_body else [pair for pair in to_query(request) if pair[0] not in {*in_path, *method.values}]
    body = body_of(request) if in_body else None
    async with session.request(route.method, path, params=query, json=body, headers=headers) as response:
        return response.status, await response.json()


def is_meant(method: AdminMethod, request: Message) -> bool:
    """Return whether a row is for a request: for its method, and for the values that the path determines."""
    return method.name == method_name(request) and all(
        getattr(request, name) == value for name, value in method.values.items()
    )


def body_of(request: Message) -> dict[str, object]:
    """Return the body of a request that has one."""
    match request:
        case pb.CreateKeyRequest() | pb.CreateAccountRequest():
            return {"settings": {name: value for name, value in to_json(request.settings).items() if value is not None}}
        case pb.UpdateKeyRequest() | pb.UpdateAccountRequest() | pb.UpdateUserRequest():
            return {"settings": {name: to_json(request.settings)[name] for name in request.update_mask.paths}}
        case pb.UpdateChannelRequest():
            changed = {name: to_json(request.settings)[name] for name in request.update_mask.paths}
            return {"settings": changed, "note": request.note, "dry_run": request.dry_run}
        case pb.UpdateModelPriceRequest():
            return {name: value for name, value in to_json(request).items() if name != "model"}
        case pb.CreateUserRequest():
            members = to_json(request)
            return {"kind": members["kind"], "settings": members["settings"]}
        case _:  # the rotation of a key or the check of a channel, whose name is in the path
            return {name: value for name, value in to_json(request).items() if name not in {"key_id", "channel"}}


def to_query(message: Message) -> list[tuple[str, str]]:
    """Return the set fields of a message as parameters of a query; a list as one parameter for each element."""
    members = to_json(message)
    return [
        (member_name(field), str(item).lower() if isinstance(item, bool) else str(item))
        for field, _ in message.ListFields()
        for value in (members[member_name(field)],)
        for item in _items(value)
    ]


def _items(value: object) -> list[object]:
    if isinstance(value, dict):
        return [f"{name}={each}" for name, each in value.items()]
    return value if isinstance(value, list) else [value]


def from_json(kind: type[MessageT], body: Mapping[str, object]) -> MessageT:
    """Return the message of which `to_json` makes the object."""
    message = kind()
    for field in fields_of(kind).values():
        value = body.get(member_name(field))
        if isinstance(value, dict) and field.message_type.GetOptions().map_entry:
            getattr(message, field.name).update(value)
        elif isinstance(value, list):
            getattr(message, field.name).extend(_decoded(field, item) for item in value)
        elif value is not None:
            item = _decoded(field, value)
            if isinstance(item, Message):
                getattr(message, field.name).CopyFrom(item)
            else:
                setattr(message, field.name, item)
    return message


def _decoded(field: FieldDescriptor, value: object) -> object:
    if field.enum_type is not None:
        return {name: number for number, name in enum_names(field.enum_type).items()}[str(value)]
    if field.message_type is None:
        return value
    kind = GetMessageClass(field.message_type)
    if kind is Timestamp:
        time = Timestamp()
        time.FromDatetime(datetime.fromisoformat(str(value)))
        return time
    if kind is Duration:
        duration = Duration()
        duration.FromTimedelta(timedelta(seconds=float(str(value))))
        return duration
    assert isinstance(value, dict)
    return from_json(kind, value)
