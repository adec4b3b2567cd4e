"""Selections of keys by project, owner and tags, as SQL conditions: for lists of keys, and for usage and records, whose
keys are found in the table of keys at the time of the query. A key never leaves its project.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import ARRAY, ColumnElement, String, and_, any_, false, literal, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.store.table_definitions import ApiKey


def is_live_key(now: datetime | ColumnElement[datetime]) -> ColumnElement[bool]:
    """Return the condition that a key in the table of keys is neither revoked nor expired at a time."""
    return and_(ApiKey.revoke_time.is_(None), or_(ApiKey.expire_time.is_(None), ApiKey.expire_time > now))


@dataclass(frozen=True)
class KeyScope:
    """Keys that a caller may use: those of some projects, those of a user, and one by its id."""

    projects: frozenset[str] = frozenset()
    user_id: str = ""
    """User whose own keys are included; "" for none."""
    user_projects: frozenset[str] | None = None
    """Projects whose keys of the user are included; None for all keys of the user."""
    key_id: str = ""
    """Further key, which need not be in the table of keys; "" for none."""

    def includes(self, key_id: str, project_id: str, user_id: str) -> bool:
        """Return whether a key belongs to the scope."""
        is_own = self.user_id != "" and user_id == self.user_id
        is_own_here = is_own and (self.user_projects is None or project_id in self.user_projects)
        return project_id in self.projects or is_own_here or (self.key_id != "" and key_id == self.key_id)

    def condition(self) -> ColumnElement[bool]:
        """Return the condition of the keys in the table of keys."""
        found: list[ColumnElement[bool]] = [false()]
        if self.projects:
            found.append(ApiKey.project_id.in_(self.projects))
        if self.user_id:
            is_own = ApiKey.user_id == self.user_id
            found.append(
                is_own if self.user_projects is None else and_(is_own, ApiKey.project_id.in_(self.user_projects))
            )
        if self.key_id:
            found.append(ApiKey.key_id == self.key_id)
        return or_(*found)


@dataclass(frozen=True)
class KeySelection:
    """Selection of keys; a key must match each criterion that is set."""

    projects: Collection[str] = ()
    """Ids of projects; empty for all keys."""
    users: Collection[str] = ()
    """Ids of the owners; empty for all keys."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Name of a tag -> value that keys must have."""
    scope: KeyScope | None = None
    """Keys that the caller may see; None for all."""
    key_ids: Collection[str] = ()
    """Ids of keys; empty for all keys."""
    text: str = ""
    """Part of the name, or beginning of the id or the prefix; "" for all keys."""
    known: Sequence[str] | None = None
    """Ids of the selected keys, if they were read already."""

    @property
    def is_everything(self) -> bool:
        """Whether all keys are selected."""
        return self.scope is None and not (self.projects or self.users or self.tags or self.key_ids or self.text)

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the conditions of the selected keys in the table of keys."""
        found = list[ColumnElement[bool]]()
        if self.projects:
            found.append(ApiKey.project_id.in_(self.projects))
        if self.users:
            found.append(ApiKey.user_id.in_(self.users))
        if self.key_ids:
            found.append(ApiKey.key_id.in_(self.key_ids))
        if self.text:
            beginnings = (column.startswith(self.text, autoescape=True) for column in (ApiKey.key_id, ApiKey.prefix))
            found.append(or_(ApiKey.name.icontains(self.text, autoescape=True), *beginnings))
        found += [ApiKey.tags[name].as_string() == value for name, value in self.tags.items()]
        if self.scope is not None:
            found.append(self.scope.condition())
        return found

    @property
    def key_beside(self) -> str:
        """Id of the key of the scope, which need not be in the table of keys; "" for none, and where its properties
        decide.
        """
        return "" if self.scope is None or self.projects or self.users or self.tags else self.scope.key_id

    def selects(self, key_id: ColumnElement[str]) -> ColumnElement[bool]:
        """Return the condition of a column with the ids of keys, in another table."""
        if self.known is not None:
            return key_id == any_(literal(self.known, ARRAY(String)))
        condition = key_id.in_(select(ApiKey.key_id).where(*self.conditions()))
        if self.key_beside:
            return or_(condition, key_id == self.key_beside)
        return condition


EVERY_KEY = KeySelection()


async def with_known_keys(session: AsyncSession, keys: KeySelection) -> KeySelection:
    """Return a selection for several queries of usage, on PostgreSQL with the ids of its keys: where the query has a
    limit, it would compare each row with each key of a query within the query.
    """
    if keys.is_everything or (await session.connection()).dialect.name == SQLITE_KIND:
        return keys
    found = [*await session.scalars(select(ApiKey.key_id).where(*keys.conditions()))]
    if keys.key_beside:
        found.append(keys.key_beside)
    return replace(keys, known=found)
