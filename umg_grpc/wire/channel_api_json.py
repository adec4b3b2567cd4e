"""JSON of request bodies about channels, by the rules of `administration_api_json.py`."""

from datetime import timedelta
from typing import Annotated

from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from msgspec import UNSET, Meta, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.administration_api_json import Given, changed_fields
from umg_grpc.wire.core.json_decoding import parse


class CheckChannelBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of the request that checks a channel: the fields of `umg.v1.CheckChannelRequest`."""

    model: str | None = None
    timeout_seconds: Annotated[float, Meta(ge=1, le=60)] | None = None


class ChannelSettingsJson(Struct, kw_only=True, forbid_unknown_fields=True):
    """Settings of a channel in a request body: the fields of `umg.v1.ChannelSettings`. Null is the config's value."""

    disabled: Given[bool] = UNSET
    weight: Given[Annotated[int, Meta(ge=0, le=1_000_000)]] = UNSET


class UpdateChannelBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of the request that changes a channel."""

    settings: ChannelSettingsJson
    note: str | None = None
    dry_run: bool | None = None


def decode_check_channel(body: bytes) -> pb.CheckChannelRequest:
    """Decode a check of a channel; b"" is a body without fields. Raise UmgError naming the field that is invalid."""
    parsed, timeout = parse(CheckChannelBody, body or b"{}"), None
    if parsed.timeout_seconds is not None:
        timeout = Duration()
        timeout.FromTimedelta(timedelta(seconds=parsed.timeout_seconds))
    return pb.CheckChannelRequest(model=parsed.model or "", timeout=timeout)


def decode_update_channel(body: bytes) -> pb.UpdateChannelRequest:
    """Decode a change of a channel: fields in the body change, null is the config's value. Raise UmgError."""
    parsed = parse(UpdateChannelBody, body)
    given, weight = changed_fields(parsed.settings), parsed.settings.weight
    return pb.UpdateChannelRequest(
        settings=pb.ChannelSettings(
            disabled=bool(parsed.settings.disabled), weight=weight if isinstance(weight, int) else None
        ),
        update_mask=FieldMask(paths=given),
        note=parsed.note or "",
        dry_run=bool(parsed.dry_run),
    )
