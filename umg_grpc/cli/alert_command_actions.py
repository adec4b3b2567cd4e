"""Implementation of `umg alerts`: prints alerts, and tests receivers, on a database or at a gateway."""

import sys
from collections.abc import Sequence

import typer

from umg_grpc.cli.admin_connection import opened
from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.cli.text_tables import Column, Fit, Form, print_line, print_table
from umg_grpc.cli.time_texts import time_text
from umg_grpc.service.alerts.alert_messages import RULE_NAMES, RULE_VALUES
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names, to_json

PAGE_ALERTS = 1000
EVENT_NAMES = enum_names(pb.AlertEvent.DESCRIPTOR)
ALERT_COLUMNS = (
    Column("opened"),
    Column("ended", 3),
    Column("rule"),
    Column("object", 4),
    Column("percent", 5, is_number=True),
    Column("summary", 1, Fit.FOLDED),
    Column("notifications", 2, Fit.FOLDED),
)


async def list_alerts(target: AdminTarget, rules: Sequence[str], limit: int, form: Form, *, is_open: bool) -> None:
    """Print the newest alerts, at most `limit`, in a form."""
    values = [RULE_VALUES[name] for name in rules]
    found = list[pb.AlertRecord]()
    async with opened(target) as admin:
        token = ""
        while len(found) < limit:
            size = min(limit - len(found), PAGE_ALERTS)
            request = pb.ListAlertsRequest(open_only=is_open, rules=values, page_size=size, page_token=token)
            response = await admin.call(request, pb.ListAlertsResponse)
            found += response.alerts
            if not (token := response.next_page_token):
                break
    print_alerts(found, form)


def print_alerts(found: Sequence[pb.AlertRecord], form: Form) -> None:
    """Print alerts in a form; JSON has all their fields."""
    print_table(ALERT_COLUMNS, map(_row, found), form, map(to_json, found))


async def test_receiver(target: AdminTarget, receiver: str) -> None:
    """Send a test notification, and print the result. Exit with 1 if the receiver did not accept it."""
    async with opened(target) as admin:
        request = pb.TestAlertReceiverRequest(receiver=receiver)
        delivery = (await admin.call(request, pb.TestAlertReceiverResponse)).delivery
    if delivery.last_error:
        print(f"umg: {receiver} did not accept the test: {delivery.last_error}", file=sys.stderr)
        raise typer.Exit(1)
    print_line(f"{receiver} accepted the test {delivery.notification_id}")


def _row(record: pb.AlertRecord) -> tuple[str, ...]:
    alert = record.alert
    return (
        time_text(alert.open_time),
        time_text(alert.close_time) if alert.HasField("close_time") else "open",
        RULE_NAMES.get(alert.rule, ""),
        alert.object,
        str(alert.threshold_percent) if alert.HasField("threshold_percent") else "",
        alert.summary,
        "; ".join(_delivery(each) for each in record.deliveries),
    )


def _delivery(delivery: pb.AlertDelivery) -> str:
    name = f"{EVENT_NAMES.get(delivery.event, '')} to {delivery.receiver}"
    if delivery.HasField("delivered_time"):
        return f"{name} {time_text(delivery.delivered_time)}"
    if not delivery.attempts:
        return f"{name} waits"
    state = f"{delivery.attempts} failed" if delivery.HasField("next_attempt_time") else "given up"
    return f"{name} {state}: {delivery.last_error}"
