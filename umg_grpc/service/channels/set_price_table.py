"""Prices of models in the database. Changes are audited."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import select

from umg_grpc.access.audit_log import CURRENT_ACT, Act, ChangedObject, record_change
from umg_grpc.base.time_units import micros_of
from umg_grpc.knowledge.price_texts import prices_text
from umg_grpc.routing.set_model_prices import EVERY_CHANNEL, SetPrice, SetPrices, prices_by_place
from umg_grpc.store import Store
from umg_grpc.store.database import repeated, repeated_after_conflict, repeated_idempotent
from umg_grpc.store.database_time import utc_of
from umg_grpc.store.model_price_table import ModelPriceRow
from umg_grpc.v1 import pb

MODEL_KIND = "model"
"""Kind of the objects in the audit log."""
_STORED_PRICES = msgspec.json.Decoder(list[tuple[int, str, str, int]])


class SetPriceTable:
    """Repository of the set prices. Its methods raise SQLAlchemyError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @repeated
    async def read(self) -> SetPrices:
        """Return all prices."""
        async with self._store.read() as session:
            return prices_by_place(map(_set_price, await session.scalars(select(ModelPriceRow))))

    @repeated_after_conflict
    @repeated_idempotent
    async def change(self, model: str, channel: str, prices: Sequence[pb.Price], note: str) -> SetPrice | None:
        """Set the prices of a model at a channel, or delete them if there are none. `note`: reason of the change.
        Return them as they are stored, None for deleted ones.
        """
        act, now = CURRENT_ACT.get() or Act(), utc_of(self._store.clock)
        async with self._store.write() as session:
            row = await session.get(ModelPriceRow, (model, channel), with_for_update=True)
            before = () if row is None else _set_price(row).prices
            if before == tuple(prices) and (row is None or row.note == note):
                return None if row is None else _set_price(row)
            changed = SetPrice(
                *(model, channel, tuple(prices), note, act.actor_id[:64], act.actor_name), update_micros=micros_of(now)
            )
            if prices:
                await session.merge(_row(changed))
            elif row is not None:
                await session.delete(row)
            await session.flush()
            name = "price" if channel == EVERY_CHANNEL else f"price at {channel}"
            texts = [prices_text(each) or None for each in (before, prices)]
            priced = ChangedObject(MODEL_KIND, model, model)
            await record_change(session, now, priced, {name: texts[0], "note": ""}, {name: texts[1], "note": note})
            return changed if prices else None


def _set_price(row: ModelPriceRow) -> SetPrice:
    return SetPrice(
        model=row.model,
        channel=row.channel,
        prices=tuple(
            pb.Price(unit=pb.BillableUnit.ValueType(unit), size=size, quality=quality, micro_credits_per_million=amount)
            for unit, size, quality, amount in _STORED_PRICES.decode(row.prices)
        ),
        note=row.note,
        actor_id=row.actor_id,
        actor_name=row.actor_name,
        update_micros=row.update_micros,
    )


def _row(price: SetPrice) -> ModelPriceRow:
    return ModelPriceRow(
        model=price.model,
        channel=price.channel,
        prices=_encoded(price.prices),
        note=price.note,
        actor_id=price.actor_id,
        actor_name=price.actor_name,
        update_micros=price.update_micros,
    )


def _encoded(prices: Sequence[pb.Price]) -> str:
    rows = [(each.unit, each.size, each.quality, each.micro_credits_per_million) for each in prices]
    return msgspec.json.encode(rows).decode()
