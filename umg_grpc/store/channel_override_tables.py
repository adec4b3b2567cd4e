"""Tables of channels: the settings that administrators have changed, and the last checks that succeeded. Times are
microseconds since 1970 in UTC.
"""

from sqlalchemy import BigInteger, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from umg_grpc.store.table_definitions import Base


class ChannelOverrideRow(Base):
    """Table of overrides: a row holds in place of the config's setting, also after a restart."""

    __tablename__ = "channel_overrides"

    channel: Mapped[str] = mapped_column(String(64), primary_key=True)
    setting: Mapped[str] = mapped_column(String(16), primary_key=True)
    """`disabled` or `weight`."""
    value: Mapped[int] = mapped_column(BigInteger)
    note: Mapped[str] = mapped_column(Text)
    actor_id: Mapped[str] = mapped_column(String(64))
    actor_name: Mapped[str] = mapped_column(Text)
    update_micros: Mapped[int] = mapped_column(BigInteger)


class ChannelCheckRow(Base):
    """Table of the last check of each channel that succeeded, of which all processes take note."""

    __tablename__ = "channel_checks"

    channel: Mapped[str] = mapped_column(String(64), primary_key=True)
    model: Mapped[str] = mapped_column(Text)
    """Model id of the provider that was called; "" if the check read the provider's model list."""
    check_micros: Mapped[int] = mapped_column(BigInteger)
