"""What alembic runs for every command: migrations go through the connection, and in the transaction, of `migrate`."""

from alembic import context

from umg_grpc.store.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,  # SQLite changes a column by making the table anew
)
with context.begin_transaction():
    context.run_migrations()
