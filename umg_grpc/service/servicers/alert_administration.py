"""Administration of alerts: their list, and tests of their receivers. Commands that work on a database use it too."""

from __future__ import annotations  # the context is needed by type checkers alone, and slow to import

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Protocol

import msgspec
from google.protobuf.message import Message

from umg_grpc.base.errors import UmgError
from umg_grpc.service.alerts.alert_messages import (
    RULE_NAMES,
    TEST_SUMMARY,
    alert_message,
    delivery_message,
    notification,
)
from umg_grpc.service.alerts.alert_receiver_interface import AlertReceiverClient, ReceiverFailedError
from umg_grpc.service.servicers.administration_errors import converted_errors
from umg_grpc.service.servicers.usage_filters import unknown_token
from umg_grpc.store.alert_table import (
    AlertDelivery,
    AlertSelection,
    AlertTable,
    new_notification_id,
)
from umg_grpc.store.usage_sum_queries import FOREVER_MICROS
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import echo
from umg_grpc.wire.core.model_list_page_token import PageBoundary, decode_token, encode_token

if TYPE_CHECKING:
    from umg_grpc.base.inprocess_channel import Context

PAGE_ALERTS = 100


class _AlertPosition(msgspec.Struct, array_like=True):
    """Position in the list of alerts, encoded in a page token: beginning and id of the last alert of a page."""

    opened: Annotated[int, msgspec.Meta(ge=0, lt=FOREVER_MICROS)]
    alert_id: str


class ReceiverSource(Protocol):
    """Source of the clients of receivers."""

    def find(self, name: str) -> AlertReceiverClient | None:
        """Return the client of a receiver; None for a name that the config does not have."""
        ...


@dataclass(frozen=True)
class AlertAdministration:
    """Methods of `umg.v1.AlertService`. `check` raises UmgError for a request that breaks a rule of the schema."""

    table: AlertTable
    clients: ReceiverSource
    check: Callable[[Message], None]
    now: Callable[[], float]

    async def ListAlerts(self, request: pb.ListAlertsRequest, context: Context) -> pb.ListAlertsResponse:
        self.check(request)
        size = request.page_size if request.HasField("page_size") else PAGE_ALERTS
        selection = AlertSelection(
            [RULE_NAMES[rule] for rule in request.rules if rule in RULE_NAMES],
            open_only=request.open_only,
            after=_position(request.page_token) if request.page_token else None,
        )
        async with converted_errors():
            found = await self.table.page(selection, size + 1)
        response = pb.ListAlertsResponse(
            alerts=[
                pb.AlertRecord(alert=alert_message(state), deliveries=map(delivery_message, deliveries))
                for state, deliveries in found[:size]
            ]
        )
        if len(found) > size:
            last = found[size - 1][0]
            position = msgspec.json.encode(_AlertPosition(last.open_micros, last.alert_id)).decode()
            response.next_page_token = encode_token(PageBoundary(position))
        return response

    async def TestAlertReceiver(
        self, request: pb.TestAlertReceiverRequest, context: Context
    ) -> pb.TestAlertReceiverResponse:
        self.check(request)
        client = self.clients.find(request.receiver)
        if client is None:
            message = f"the config has no alert receiver {echo(request.receiver)}; its names are in `alerts.receivers`"
            raise UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=request.receiver[:100])
        began, notification_id = round(self.now() * 1e6), new_notification_id()
        alert = pb.Alert(summary=TEST_SUMMARY)
        error = ""
        try:
            await client.send(notification(notification_id, pb.ALERT_EVENT_TESTED, alert, began))
        except ReceiverFailedError as failure:
            error = str(failure)
        delivery = AlertDelivery(
            *(notification_id, "", request.receiver, pb.ALERT_EVENT_TESTED, 1, None, began),
            deliver_micros=None if error else round(self.now() * 1e6),
            error=error,
        )
        return pb.TestAlertReceiverResponse(delivery=delivery_message(delivery))


def _position(token: str) -> tuple[int, str]:
    try:
        found = msgspec.json.decode(decode_token(token).id, type=_AlertPosition)
    except msgspec.DecodeError:
        raise unknown_token() from None
    return found.opened, found.alert_id
