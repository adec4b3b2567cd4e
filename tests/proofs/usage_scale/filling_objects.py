"""Fills a database with keys, projects, people and acts of administration, by statements of the database alone."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import text

from umg_grpc.access.budget_settings import budget_account
from umg_grpc.base.time_units import micros_of
from umg_grpc.store import Store
from umg_grpc.store.database_constants import SQLITE_KIND


@dataclass(frozen=True)
class Objects:
    """Objects that were created before `end`. Calls are of the first keys, which belong to the first projects."""

    end: datetime
    keys: int
    key_projects: int = 12
    """Projects that have keys."""
    projects: int = 2000
    organizations: int = 20
    people: int = 2000
    events: int = 100_000
    """Acts in the audit log."""


async def fill_objects(store: Store, objects: Objects) -> None:
    """Insert the objects. Every second key and each project has a budget of the month, of which a part is spent."""
    async with store.read() as session:
        dialect = (await session.connection()).dialect.name
    for statement in _statements(objects, dialect):
        async with store.write() as session:
            await session.execute(text(statement))
    if dialect != SQLITE_KIND:
        for table in ("api_keys", "accounts", "users", "memberships", "audit_events", "budget_accounts"):
            async with store.write() as session:
                await session.execute(text(f"ANALYZE {table}"))


def _statements(objects: Objects, dialect: str) -> list[str]:
    def numbers(count: int) -> str:
        if dialect == SQLITE_KIND:
            return f"WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count - 1})"
        return f"WITH numbers AS (SELECT n FROM generate_series(CAST(0 AS BIGINT), {count - 1}) AS n)"

    def named(prefix: str, number: str) -> str:
        if dialect == SQLITE_KIND:
            return f"printf('{prefix}%016d', {number})"
        return f"'{prefix}' || lpad(CAST({number} AS TEXT), 16, '0')"

    month = objects.end.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    created = f"'{objects.end - timedelta(days=1):%Y-%m-%d %H:%M:%S}{'' if dialect == SQLITE_KIND else '+00'}'"
    budget = "'[[\"month\", 50000000, false]]'"
    spent = "(key_id, period_start, spent_micro_credits)"
    period = int(month.timestamp())
    accounts = (
        "INSERT INTO accounts (account_id, kind, name, organization_id, model_patterns, channels, operations, budgets,"
        " tags, create_time)"
    )
    project = named("proj_", f"n % {objects.key_projects}")
    return [
        f"{accounts} {numbers(objects.organizations)} SELECT {named('org_', 'n')}, 'organization', 'organization ' || n,"
        f" NULL, '[]', '[]', '[]', '[]', '{{}}', {created} FROM numbers",
        f"{accounts} {numbers(objects.projects)} SELECT {named('proj_', 'n')}, 'project', 'project ' || n,"
        f" {named('org_', f'n % {objects.organizations}')}, '[]', '[]', '[]', {budget}, '{{}}', {created} FROM numbers",
        "INSERT INTO users (user_id, kind, name, email, disabled, create_time)"
        f" {numbers(objects.people)} SELECT {named('user_', 'n')}, 'person', 'person ' || n, 'person' || n ||"
        f" '@example.com', false, {created} FROM numbers",
        "INSERT INTO memberships (user_id, account_id, from_issuer, role)"
        f" {numbers(objects.people)} SELECT {named('user_', 'n')}, {named('proj_', f'n % {objects.projects}')}, false,"
        " 'member' FROM numbers",
        "INSERT INTO api_keys (key_id, secret_hash, prefix, name, model_patterns, create_time, channels, show_route,"
        " operations, administrator, owner, tags, budget_micro_credits, budget_period, project_id, user_id, budgets)"
        f" {numbers(objects.keys)} SELECT {named('key_', 'n')}, 'hash ' || n, 'sk-umg-' || n, 'key ' || n, '[]',"
        f" {created}, '[]', false, '[]', false, 'team ' || n % 40, '{{}}', CASE WHEN n % 2 = 0 THEN 20000000 END,"
        f" CASE WHEN n % 2 = 0 THEN 'month' END, {project}, {named('user_', f'n % {objects.people}')}, '[]' FROM numbers",
        f"INSERT INTO budget_accounts {spent} {numbers(objects.keys)} SELECT {named('key_', 'n')}, {period},"
        " 1000 * (n % 20000) FROM numbers WHERE n % 2 = 0",
        f"INSERT INTO budget_accounts {spent} {numbers(objects.projects)} SELECT {named('proj_', 'n')} || '{budget_account('', 'month')}',"
        f" {period}, 10000 * n FROM numbers",
        "INSERT INTO audit_events (event_id, time_micros, actor_kind, actor_id, actor_name, credential, address, method,"
        " object_kind, object_id, object_name, account_id, refused, message, before_json, after_json, request_id)"
        f" {numbers(objects.events)} SELECT 'scale-' || n, {micros_of(objects.end)} - n * 60000000, 'user',"
        f" {named('user_', f'n % {objects.people}')}, 'person ' || n % {objects.people}, '', '10.0.0.1', 'UpdateKey',"
        f" 'key', {named('key_', f'n % {objects.keys}')}, 'key ' || n % {objects.keys}, {project}, false, '', '{{}}',"
        f" '{{\"name\": \"a\"}}', 'req-' || n FROM numbers",
    ]
