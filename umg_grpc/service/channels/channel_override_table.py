"""Overrides and checks of channels in the database. Changes are audited."""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import select

from umg_grpc.access.audit_log import CURRENT_ACT, Act, ChangedObject, record_change
from umg_grpc.base.time_units import micros_of
from umg_grpc.routing.overridden_channels import (
    DISABLED_SETTING,
    WEIGHT_SETTING,
    ChannelOverride,
    Overrides,
    overrides_by_setting,
)
from umg_grpc.store import Store
from umg_grpc.store.channel_override_tables import ChannelCheckRow, ChannelOverrideRow
from umg_grpc.store.database import repeated, repeated_after_conflict, repeated_idempotent
from umg_grpc.store.database_time import utc_of

CHANNEL_KIND = "channel"
"""Kind of the objects in the audit log."""


class SuccessfulCheck(NamedTuple):
    """Last check of a channel that succeeded: the provider's id of the called model ("" for none), and the time."""

    channel: str
    model: str
    check_micros: int


class ChannelOverrideTable:
    """Repository of the overrides and checks. Its methods raise SQLAlchemyError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @repeated
    async def read(self) -> tuple[Overrides, list[SuccessfulCheck]]:
        """Return all overrides, and the last check of each channel that succeeded."""
        async with self._store.read() as session:
            overrides = overrides_by_setting(map(_override, await session.scalars(select(ChannelOverrideRow))))
            checks = [
                SuccessfulCheck(row.channel, row.model, row.check_micros)
                for row in await session.scalars(select(ChannelCheckRow))
            ]
        return overrides, checks

    @repeated_after_conflict
    @repeated_idempotent
    async def change(self, channel: str, values: Mapping[str, int | None], note: str) -> None:
        """Set overrides of a channel, or delete those whose value is None. `note`: reason of the change."""
        act, now = CURRENT_ACT.get() or Act(), utc_of(self._store.clock)
        async with self._store.write() as session:
            query = select(ChannelOverrideRow).where(ChannelOverrideRow.channel == channel).with_for_update()
            rows = {row.setting: row for row in await session.scalars(query)}
            before = {setting: row.value for setting, row in rows.items()}
            changed = {name: value for name, value in values.items() if not _holds(rows.get(name), value, note)}
            for setting, value in changed.items():
                if value is None:
                    await session.delete(rows[setting])
                    continue
                await session.merge(
                    ChannelOverrideRow(
                        channel=channel,
                        setting=setting,
                        value=value,
                        note=note,
                        actor_id=act.actor_id[:64],
                        actor_name=act.actor_name,
                        update_micros=micros_of(now),
                    )
                )
            if changed:
                await session.flush()
                settings = {**_settings(before), "note": ""}, {**_settings({**before, **changed}), "note": note}
                await record_change(session, now, ChangedObject(CHANNEL_KIND, channel, channel), *settings)

    @repeated_idempotent
    async def record_check(self, channel: str, result: Mapping[str, object], success: SuccessfulCheck | None) -> None:
        """Write the event of a check with its result, and the check itself if it succeeded."""
        async with self._store.write() as session:
            if success is not None:
                await session.merge(ChannelCheckRow(**success._asdict()))
            changed = ChangedObject(CHANNEL_KIND, channel, channel)
            await record_change(session, utc_of(self._store.clock), changed, None, result)


def _holds(row: ChannelOverrideRow | None, value: int | None, note: str) -> bool:
    """Return whether an override has this value and note already. `row`, `value`: None without an override."""
    return value is None if row is None else (row.value, row.note) == (value, note)


def _settings(values: Mapping[str, int | None]) -> dict[str, object]:
    """Return the overrides of a channel for the audit log; None for the config's value."""
    return {DISABLED_SETTING: values.get(DISABLED_SETTING) is not None, WEIGHT_SETTING: values.get(WEIGHT_SETTING)}


def _override(row: ChannelOverrideRow) -> ChannelOverride:
    return ChannelOverride(
        channel=row.channel,
        setting=row.setting,
        value=row.value,
        note=row.note,
        actor_id=row.actor_id,
        actor_name=row.actor_name,
        update_micros=row.update_micros,
    )
