"""Organisations and projects in a database."""

import secrets

from umg_grpc.access.account_levels import ORGANIZATION_KIND, PROJECT_KIND
from umg_grpc.access.budget_settings import Budget
from umg_grpc.store import Store
from umg_grpc.store.database_time import utc_of
from umg_grpc.store.table_definitions import AccountRow

SETTINGS = {"model_patterns": [], "channels": [], "operations": [], "budgets": [], "tags": {}}


async def new_organization(store: Store, name: str, **settings: object) -> str:
    return await _new(store, f"org_{secrets.token_hex(8)}", ORGANIZATION_KIND, name, None, settings)


async def new_project(store: Store, name: str, organization: str | None = None, **settings: object) -> str:
    return await _new(store, f"proj_{secrets.token_hex(8)}", PROJECT_KIND, name, organization, settings)


async def change_account(store: Store, account_id: str, **columns: object) -> None:
    async with store.write() as session:
        row = await session.get(AccountRow, account_id)
        for column, value in columns.items():
            setattr(row, column, value)


def rows_of(*budgets: Budget) -> list[list[object]]:
    """Return budgets as the database has them."""
    return [[*budget] for budget in budgets]


async def _new(
    store: Store, account_id: str, kind: str, name: str, organization: str | None, settings: dict[str, object]
) -> str:
    columns = {**SETTINGS, **settings, "organization_id": organization, "create_time": utc_of(store.clock)}
    async with store.write() as session:
        session.add(AccountRow(account_id=account_id, kind=kind, name=name, **columns))
    return account_id
