"""Administration of alerts: their list, and tests of their receivers. Commands that work on a database use it too."""

from __future__ import annotations  # the context is needed by type checkers alone, and slow to import

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Protocol

import msgspec

from umg_grpc.access.principals import WHOLE_GATEWAY
from umg_grpc.access.role_permissions import Extent
from umg_grpc.base.errors import UmgError
from umg_grpc.service.alerts.alert_messages import (
    RULE_NAMES,
    TEST_SUMMARY,
    alert_message,
    delivery_message,
    notification,
)
from umg_grpc.service.alerts.alert_receiver_interface import AlertReceiverClient, ReceiverFailedError
from umg_grpc.service.servicers.administrative_calls import AdministrativeCalls, RequestCheck
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
    from umg_grpc.access.access_control import Authority
    from umg_grpc.base.inprocess_channel import Context
    from umg_grpc.store import Store

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


class AlertAdministration:
    """Methods of `umg.v1.AlertService`. `check` raises UmgError for a request that breaks a rule of the schema."""

    def __init__(
        self,
        store: Store,
        table: AlertTable,
        clients: ReceiverSource,
        check: RequestCheck,
        now: Callable[[], float],
    ) -> None:
        self._calls = AdministrativeCalls("AlertService", store, check)
        self._table, self._clients, self._now = table, clients, now

    async def ListAlerts(self, request: pb.ListAlertsRequest, context: Context) -> pb.ListAlertsResponse:
        return await self._calls.run(request, context, self._list)

    async def TestAlertReceiver(
        self, request: pb.TestAlertReceiverRequest, context: Context
    ) -> pb.TestAlertReceiverResponse:
        return await self._calls.run(request, context, self._test)

    async def _list(self, request: pb.ListAlertsRequest, authority: Authority) -> pb.ListAlertsResponse:
        size = request.page_size if request.HasField("page_size") else PAGE_ALERTS
        if (selection := _selection(request, authority)) is None:
            return pb.ListAlertsResponse()
        found = await self._table.page(selection, size + 1)
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

    async def _test(self, request: pb.TestAlertReceiverRequest, authority: Authority) -> pb.TestAlertReceiverResponse:
        authority.check_account(pb.PERMISSION_ALERTS_WRITE, WHOLE_GATEWAY)
        client = self._clients.find(request.receiver)
        if client is None:
            message = f"the config has no alert receiver {echo(request.receiver)}; its names are in `alerts.receivers`"
            raise UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=request.receiver[:100])
        began, notification_id = round(self._now() * 1e6), new_notification_id()
        alert = pb.Alert(summary=TEST_SUMMARY)
        error = ""
        try:
            await client.send(notification(notification_id, pb.ALERT_EVENT_TESTED, alert, began))
        except ReceiverFailedError as failure:
            error = str(failure)
        delivery = AlertDelivery(
            *(notification_id, "", request.receiver, pb.ALERT_EVENT_TESTED, 1, None, began),
            deliver_micros=None if error else round(self._now() * 1e6),
            error=error,
        )
        return pb.TestAlertReceiverResponse(delivery=delivery_message(delivery))


def _selection(request: pb.ListAlertsRequest, authority: Authority) -> AlertSelection | None:
    """Return the requested alerts that the caller may see; None if there are none."""
    accounts, rules = authority.allowed_accounts(pb.PERMISSION_ALERTS_READ), [*request.rules]
    if accounts is None and authority.extent(pb.PERMISSION_ALERTS_READ, WHOLE_GATEWAY) < Extent.ALL:
        rules = [rule for rule in rules or [pb.ALERT_RULE_BUDGET] if rule == pb.ALERT_RULE_BUDGET]
        if not rules:
            return None
    return AlertSelection(
        [RULE_NAMES[rule] for rule in rules if rule in RULE_NAMES],
        open_only=request.open_only,
        after=_position(request.page_token) if request.page_token else None,
        accounts=accounts,
    )


def _position(token: str) -> tuple[int, str]:
    try:
        found = msgspec.json.decode(decode_token(token).id, type=_AlertPosition)
    except msgspec.DecodeError:
        raise unknown_token() from None
    return found.opened, found.alert_id
