"""Look-up of the projects and organisations of keys in the database."""

from collections.abc import Collection

from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from umg_grpc.access.account_levels import PROJECT_KIND, AccountLevel, Levels
from umg_grpc.access.budget_settings import budgets_of
from umg_grpc.base.errors import UmgError
from umg_grpc.store.table_definitions import AccountRow
from umg_grpc.v1 import pb


async def levels_of(session: AsyncSession, projects: Collection[str | None]) -> dict[str | None, Levels]:
    """Return project id -> the project and its organisation. Ids that do not exist, and None, are absent."""
    wanted = {project for project in projects if project}
    if not wanted:
        return {}
    parent = aliased(AccountRow)
    query = (
        select(AccountRow, parent)
        .outerjoin(parent, parent.account_id == AccountRow.organization_id)
        .where(AccountRow.account_id.in_(wanted))
    )
    found = dict[str | None, Levels]()
    for project, organization in await session.execute(query):
        rows: tuple[AccountRow | None, ...] = (project, organization)
        found[project.account_id] = tuple(level_of(row) for row in rows if row is not None)
    return found


def level_of(row: AccountRow) -> AccountLevel:
    """Return a row of the database as a level."""
    return AccountLevel(
        account_id=row.account_id,
        kind=row.kind,
        name=row.name,
        model_patterns=tuple(row.model_patterns),
        channels=tuple(row.channels),
        operations=frozenset(row.operations),
        requests_per_minute=row.requests_per_minute,
        tokens_per_minute=row.tokens_per_minute,
        concurrent_requests=row.concurrent_requests,
        budgets=budgets_of(row.budgets),
        is_closed=row.close_time is not None,
    )


async def find_project(session: AsyncSession, reference: str) -> AccountRow:
    """Return the project with this id, or the open one with this name. Raise UmgError(OBJECT_NOT_FOUND)."""
    named = (AccountRow.name == reference) & AccountRow.close_time.is_(None)
    is_meant = (AccountRow.kind == PROJECT_KIND) & or_(AccountRow.account_id == reference, named)
    rows = list(await session.scalars(select(AccountRow).where(is_meant)))
    for row in sorted(rows, key=lambda row: row.account_id != reference):  # an id before a name
        return row
    message = "there is no such project; `umg projects list` shows ids and names"
    raise UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=reference, field="project_id")
