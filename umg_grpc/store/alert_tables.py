"""Tables of alerts, of their notifications, and of the open circuit breakers that processes report for them. Times are
microseconds since 1970 in UTC.
"""

from sqlalchemy import BigInteger, Index, Integer, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from umg_grpc.store.table_definitions import Base, only_where


class AlertRow(Base):
    """Table of alerts, those whose condition holds and past ones."""

    __tablename__ = "alerts"
    __table_args__ = (
        Index(
            "uq_alerts_open",
            *("rule", "object", "threshold", "period_start"),
            unique=True,
            info=only_where("close_micros IS NULL"),
        ),
        Index("ix_alerts_open_micros", "open_micros", "alert_id"),
        Index("ix_alerts_close_micros", "close_micros"),
    )

    alert_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    rule: Mapped[str] = mapped_column(String(32))
    """Name of the rule in the config."""
    object: Mapped[str] = mapped_column(Text)
    threshold: Mapped[int] = mapped_column(Integer)
    """Threshold in percent; 0 for a rule without thresholds."""
    period_start: Mapped[int] = mapped_column(BigInteger)
    """Start of the budget period in seconds since 1970 in UTC; 0 if there is none."""
    summary: Mapped[str] = mapped_column(Text)
    details: Mapped[str] = mapped_column(Text)
    """Facts by name, as an object of texts in JSON."""
    open_micros: Mapped[int] = mapped_column(BigInteger)
    close_micros: Mapped[int | None] = mapped_column(BigInteger)
    calm_micros: Mapped[int | None] = mapped_column(BigInteger)
    """Time since which the condition was not found; None while it is found."""
    notify_micros: Mapped[int] = mapped_column(BigInteger)
    """Time of the last notification, or of the alert's beginning if it had none."""


class AlertDeliveryRow(Base):
    """Table of notifications of one receiver about an alert: those to be sent, and results."""

    __tablename__ = "alert_deliveries"
    __table_args__ = (
        Index("ix_alert_deliveries_next_attempt_micros", "next_attempt_micros"),
        Index("ix_alert_deliveries_alert_id", "alert_id"),
    )

    notification_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    """Unique id, also sent as `webhook-id`, by which the receiver recognizes a repeated notification."""
    alert_id: Mapped[str] = mapped_column(String(40))
    receiver: Mapped[str] = mapped_column(String(32))
    event: Mapped[int] = mapped_column(Integer)
    """Number of `umg.v1.AlertEvent`."""
    attempts: Mapped[int] = mapped_column(Integer)
    lease_owner: Mapped[str] = mapped_column(String(64))
    next_attempt_micros: Mapped[int | None] = mapped_column(BigInteger)
    """Time of the next attempt or, while a process has a lease, end of the lease; None after the last attempt."""
    create_micros: Mapped[int] = mapped_column(BigInteger)
    deliver_micros: Mapped[int | None] = mapped_column(BigInteger)
    error: Mapped[str] = mapped_column(Text)
    """Reason of the last failed attempt, "" if none failed."""
    body: Mapped[bytes] = mapped_column(LargeBinary, sort_order=1)
    """`umg.v1.AlertNotification`."""


class ChannelOutageRow(Base):
    """Table of the circuit breakers that are not closed, each reported by the process that has it."""

    __tablename__ = "channel_outages"

    channel: Mapped[str] = mapped_column(Text, primary_key=True)
    model: Mapped[str] = mapped_column(Text, primary_key=True)
    """Model id of the provider."""
    process: Mapped[str] = mapped_column(String(64), primary_key=True)
    since_micros: Mapped[int] = mapped_column(BigInteger)
    seen_micros: Mapped[int] = mapped_column(BigInteger)
    """Time of the last report. A process that has ended reports no longer."""


class WorkLeaseRow(Base):
    """Table of leases on work that one process does for all."""

    __tablename__ = "work_leases"

    work: Mapped[str] = mapped_column(String(32), primary_key=True)
    holder: Mapped[str] = mapped_column(String(64))
    """Process that does the work."""
    end_micros: Mapped[int] = mapped_column(BigInteger)
    """Time from which another process may take the work over."""
