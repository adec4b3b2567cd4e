"""Report of the config in force, as messages of `umg.v1`."""

from __future__ import annotations  # the context is needed by type checkers alone, and slow to import

from typing import TYPE_CHECKING, Annotated, Final, Protocol

import msgspec

from umg_grpc.service.servicers.administrative_calls import AdministrativeCalls, RequestCheck
from umg_grpc.service.servicers.usage_filters import unknown_token
from umg_grpc.v1 import pb
from umg_grpc.wire.core.model_list_page_token import PageBoundary, decode_token, encode_token
from umg_grpc.wire.protobuf_json import enum_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from umg_grpc.access.access_control import Authority
    from umg_grpc.base.inprocess_channel import Context
    from umg_grpc.config.settings_in_force import Setting
    from umg_grpc.store import Store

PAGE_SETTINGS = 10_000
SOURCE_VALUES: Final = {
    name: pb.ConfigSource.ValueType(value) for value, name in enum_names(pb.ConfigSource.DESCRIPTOR).items()
}


class ConfigInForce(Protocol):
    """Config of the process."""

    async def settings(self) -> Sequence[Setting]:
        """Return the settings in force, with their sources."""
        ...

    async def status(self) -> pb.ConfigStatus:
        """Return the state of the config, compared with its file."""
        ...


class _Place(msgspec.Struct, array_like=True):
    """Place in the list of settings, encoded in a page token."""

    number: Annotated[int, msgspec.Meta(ge=1, le=10**9)]


class ConfigReport:
    """Methods of `umg.v1.ConfigService`. `check` raises UmgError for a request that breaks a rule of the schema."""

    def __init__(self, store: Store, config: ConfigInForce, check: RequestCheck) -> None:
        self._calls = AdministrativeCalls("ConfigService", store, check)
        self._config = config

    async def GetConfig(self, request: pb.GetConfigRequest, context: Context) -> pb.GetConfigResponse:
        return await self._calls.run(request, context, self._get)

    async def _get(self, request: pb.GetConfigRequest, _: Authority) -> pb.GetConfigResponse:
        begin = _place(request.page_token)
        size = request.page_size if request.HasField("page_size") else PAGE_SETTINGS
        status = await self._config.status()
        chosen = [each for each in await self._config.settings() if _is_requested(each, request)]
        found = chosen[begin : begin + size + 1]
        settings = [_message(each, status.restart_keys) for each in found[:size]]
        response = pb.GetConfigResponse(settings=settings, status=status)
        if len(found) > size:
            position = msgspec.json.encode(_Place(begin + size)).decode()
            response.next_page_token = encode_token(PageBoundary(position))
        return response


def _is_requested(setting: Setting, request: pb.GetConfigRequest) -> bool:
    is_changed = not request.changed_only or SOURCE_VALUES[setting.source] != pb.CONFIG_SOURCE_DEFAULT
    return is_changed and setting.path.startswith(request.path_prefix)


def _message(setting: Setting, restart_keys: Sequence[str]) -> pb.ConfigSetting:
    waits = any(setting.path == key or setting.path.startswith((f"{key}.", f"{key}[")) for key in restart_keys)
    return pb.ConfigSetting(
        path=setting.path,
        value=setting.value,
        source=SOURCE_VALUES[setting.source],
        line=setting.line or None,
        variables=setting.variables,
        secret=setting.is_secret,
        waits_for_restart=waits,
    )


def _place(token: str) -> int:
    if not token:
        return 0
    try:
        return msgspec.json.decode(decode_token(token).id, type=_Place).number
    except msgspec.DecodeError:
        raise unknown_token() from None
