"""Page of alerts: those whose condition holds, the past ones with their recovery, and a test of each receiver."""

from collections.abc import Sequence
from dataclasses import dataclass

from http_facade.console import form_values
from http_facade.console.address_filters import ListPages
from http_facade.console.call_outcomes import Mark
from http_facade.console.page_interface import Done, Form, Visit
from umg_grpc.base.errors import UmgError
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names

PAGE_SIZE = 50
RULE_NAMES = enum_names(pb.AlertRule.DESCRIPTOR)


@dataclass(frozen=True)
class AlertLine:
    """Alert with its last notification."""

    alert: pb.Alert
    mark: Mark
    rule: str
    object_name: str
    summary: str
    receivers: Sequence[tuple[str, Mark, str]]
    """Receiver, whether it accepted its last notification, and the reason if it did not."""


@dataclass(frozen=True)
class AlertListing:
    """Content of the page of alerts."""

    rows: Sequence[AlertLine]
    open_only: bool
    pages: ListPages
    may_test: bool


async def load_alerts(visit: Visit) -> AlertListing:
    """Return a page of alerts, newest first."""
    filters = visit.filters
    open_only = bool(filters.text("open"))
    request = pb.ListAlertsRequest(open_only=open_only, page_size=PAGE_SIZE, page_token=filters.page_token)
    response = await visit.calls.call(request, pb.ListAlertsResponse)
    return AlertListing(
        rows=[_row(record) for record in response.alerts],
        open_only=open_only,
        pages=filters.pages(response.next_page_token),
        may_test=visit.rights.may(pb.PERMISSION_ALERTS_WRITE),
    )


async def test_receiver(visit: Visit, form: Form) -> Done:
    """Send a test to a receiver. Raise UmgError with the receiver's failure."""
    request = pb.TestAlertReceiverRequest(receiver=form_values.text(form, "receiver"))
    delivery = (await visit.calls.call(request, pb.TestAlertReceiverResponse)).delivery
    if not delivery.HasField("delivered_time"):
        message = f"not delivered: {printable(delivery.last_error)}"
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message)
    return Done("/console/alerts", "test_delivered")


def _row(record: pb.AlertRecord) -> AlertLine:
    alert = record.alert
    last = {delivery.receiver: delivery for delivery in record.deliveries}
    return AlertLine(
        alert=alert,
        mark=Mark("good", "recovered") if alert.HasField("close_time") else Mark("bad", "open"),
        rule=RULE_NAMES.get(alert.rule, ""),
        object_name=printable(alert.object),
        summary=printable(alert.summary),
        receivers=[
            (printable(name), _delivery(delivery), printable(delivery.last_error)) for name, delivery in last.items()
        ],
    )


def _delivery(delivery: pb.AlertDelivery) -> Mark:
    if delivery.HasField("delivered_time"):
        return Mark("good", "delivered")
    is_pending = delivery.HasField("next_attempt_time")
    return Mark("warn", "not yet delivered") if is_pending else Mark("bad", "given up")
