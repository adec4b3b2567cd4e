"""Alembic environment, run for every command: migrations use the connection and transaction of `schema_migration`."""

from alembic import context

from umg_grpc.store.audit_table import AuditRow  # noqa: F401  adds the table of the audit log
from umg_grpc.store.channel_override_tables import ChannelOverrideRow  # noqa: F401  adds the tables of channels
from umg_grpc.store.model_price_table import ModelPriceRow  # noqa: F401  adds the table of set prices
from umg_grpc.store.session_table import SessionRow  # noqa: F401  adds the table of sessions
from umg_grpc.store.table_definitions import Base
from umg_grpc.store.usage_tables import UsageRow  # noqa: F401  adds the tables of usage to `Base.metadata`
from umg_grpc.store.user_tables import UserRow  # noqa: F401  adds the tables of users

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,  # SQLite can change a column only by recreating its table
)
with context.begin_transaction():
    context.run_migrations()
