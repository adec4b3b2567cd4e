"""Messages about alerts: of the schema, and texts for people."""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.base.time_units import time_of
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.store.alert_table import AlertDelivery, AlertState
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names

RULE_VALUES: Mapping[str, "pb.AlertRule.ValueType"] = MappingProxyType(
    {name: pb.AlertRule.ValueType(value) for value, name in enum_names(pb.AlertRule.DESCRIPTOR).items()}
)
"""Name of a rule in the config and in the database -> rule."""
RULE_NAMES: Mapping[int, str] = MappingProxyType({value: name for name, value in RULE_VALUES.items()})
EVENT_WORDS: Mapping[int, str] = MappingProxyType(
    {
        pb.ALERT_EVENT_OPENED: "Alert",
        pb.ALERT_EVENT_REMINDED: "Still",
        pb.ALERT_EVENT_RECOVERED: "Over",
        pb.ALERT_EVENT_TESTED: "Test",
    }
)
TEST_SUMMARY = "This is a test of an alert receiver. There is nothing to do."


def alert_message(state: AlertState) -> pb.Alert:
    """Return an alert as a message."""
    return pb.Alert(
        alert_id=state.alert_id,
        rule=RULE_VALUES.get(state.rule, pb.ALERT_RULE_UNSPECIFIED),
        object=state.object,
        threshold_percent=state.threshold or None,
        period_start_time=timestamp(datetime.fromtimestamp(state.period_start, UTC)) if state.period_start else None,
        summary=state.summary,
        details=state.details,
        open_time=_time(state.open_micros),
        close_time=_time(state.close_micros),
    )


def delivery_message(delivery: AlertDelivery) -> pb.AlertDelivery:
    """Return the state of a notification as a message."""
    return pb.AlertDelivery(
        notification_id=delivery.notification_id,
        receiver=delivery.receiver,
        event=pb.AlertEvent.ValueType(delivery.event),
        create_time=_time(delivery.create_micros),
        delivered_time=_time(delivery.deliver_micros),
        attempts=delivery.attempts,
        next_attempt_time=_time(delivery.next_attempt_micros),
        last_error=delivery.error,
    )


def notification(
    notification_id: str, event: "pb.AlertEvent.ValueType", alert: pb.Alert, now_micros: int
) -> pb.AlertNotification:
    """Return a notification about an alert."""
    return pb.AlertNotification(
        notification_id=notification_id, event=event, alert=alert, create_time=_time(now_micros)
    )


def title_of(sent: pb.AlertNotification) -> str:
    """Return the first line of a notification for people, for example `Alert: budget`."""
    rule = RULE_NAMES.get(sent.alert.rule, "").replace("_", " ")
    return f"{EVENT_WORDS.get(sent.event, 'Alert')}{f': {rule}' if rule else ''}"


def times_of(sent: pb.AlertNotification) -> str:
    """Return the beginning and the end of an alert as a sentence."""
    began = f"Since {_text(sent.alert.open_time)}"
    return f"{began}, until {_text(sent.alert.close_time)}." if sent.alert.HasField("close_time") else f"{began}."


def _text(time: Timestamp) -> str:
    return time.ToDatetime(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _time(micros: int | None) -> Timestamp | None:
    return None if micros is None else timestamp(time_of(micros))
