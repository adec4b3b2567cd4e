"""Migration of a database to the schema of this version."""

from sqlalchemy import Connection, Index, Table, inspect, text

from umg_grpc.store.alert_tables import AlertRow  # noqa: F401  adds the tables of alerts to `Base.metadata`
from umg_grpc.store.audit_table import AuditRow  # noqa: F401  adds the table of the audit log
from umg_grpc.store.call_count_tables import COUNT_TABLES  # noqa: F401  adds the tables of numbers of calls
from umg_grpc.store.channel_override_tables import ChannelOverrideRow  # noqa: F401  adds the tables of channels
from umg_grpc.store.model_price_table import ModelPriceRow  # noqa: F401  adds the table of set prices
from umg_grpc.store.schema_version import NEWEST_MIGRATION, VERSION_TABLE
from umg_grpc.store.session_table import SessionRow  # noqa: F401  adds the table of sessions
from umg_grpc.store.table_definitions import Base
from umg_grpc.store.usage_tables import UsageRow  # noqa: F401  adds the tables of usage to `Base.metadata`
from umg_grpc.store.user_tables import UserRow  # noqa: F401  adds the tables of users


class NewerDatabaseError(Exception):
    """Error for a database with the schema of a later version: this version must not change it."""


class NoDatabaseError(Exception):
    """Error for a database without the gateway's tables, if the caller does not want them to be created."""


def migrate(connection: Connection, *, create: bool = True) -> None:
    """Migrate a database to the newest schema, in the caller's transaction. The caller has to exclude other processes.
    An empty database gets the newest schema directly (a test compares it with the result of the migrations), and an
    up-to-date one is not changed; both without loading alembic, which takes megabytes. Raise NewerDatabaseError, and
    NoDatabaseError for a database without the gateway's tables unless `create`.
    """
    tables = set(inspect(connection).get_table_names())
    if not create and VERSION_TABLE not in tables:
        raise NoDatabaseError
    if not tables:
        _add_options(connection.dialect.name)
        Base.metadata.create_all(connection, checkfirst=False)
        connection.execute(text(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
        insert = text(f"INSERT INTO {VERSION_TABLE} VALUES (:head)")  # noqa: S608  a name of our own
        connection.execute(insert, {"head": NEWEST_MIGRATION})
    elif VERSION_TABLE not in tables or _versions(connection) != {NEWEST_MIGRATION}:
        _upgrade(connection)


def _add_options(kind: str) -> None:
    """Add the options that tables and indexes have in a kind of database, which their `info` holds."""
    for table in Base.metadata.tables.values():
        parts: list[Table | Index] = [table, *table.indexes]
        for part in parts:
            if options := part.info.get(kind):
                part.dialect_options[kind].update(options)


def schema_of(connection: Connection) -> str:
    """Return the name of the newest migration of a database, for example `0012`; "" without the gateway's tables."""
    if VERSION_TABLE not in inspect(connection).get_table_names():
        return ""
    return max(_versions(connection), default="")


def _versions(connection: Connection) -> set[str]:
    return set(connection.scalars(text(f"SELECT version_num FROM {VERSION_TABLE}")))  # noqa: S608  a name of our own


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", "umg_grpc.store:migrations")
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    unknown = set(MigrationContext.configure(connection).get_current_heads()) - known
    if unknown:
        revisions = ", ".join(sorted(unknown))
        raise NewerDatabaseError(f"was used by a newer version of the gateway (schema {revisions}): start that one")
    command.upgrade(config, "head")
