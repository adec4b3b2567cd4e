"""Table of the prices of models that administrators have set. Times are microseconds since 1970 in UTC."""

from sqlalchemy import BigInteger, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from umg_grpc.store.table_definitions import Base


class ModelPriceRow(Base):
    """Table of prices: a row holds in place of other prices than those of the file, also after a restart."""

    __tablename__ = "model_prices"

    model: Mapped[str] = mapped_column(String(256), primary_key=True)
    """Public id of the model."""
    channel: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Name of a channel; "" for all that have no row of their own."""
    prices: Mapped[str] = mapped_column(Text)
    """JSON: a list of lists with unit, size, quality, and micro-credits for a million units."""
    note: Mapped[str] = mapped_column(Text)
    actor_id: Mapped[str] = mapped_column(String(64))
    actor_name: Mapped[str] = mapped_column(Text)
    update_micros: Mapped[int] = mapped_column(BigInteger)
