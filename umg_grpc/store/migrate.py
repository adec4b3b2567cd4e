"""Brings a database to this version's schema."""

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection


class NewerDatabaseError(Exception):
    """A later version has been here; this one must not touch what it does not know."""


def migrate(connection: Connection) -> None:
    """Applies the migrations that are missing, in the caller's transaction and under the caller's lock.

    Raises NewerDatabaseError.
    """
    config = Config()
    config.set_main_option("script_location", "umg_grpc.store:migrations")
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    unknown = set(MigrationContext.configure(connection).get_current_heads()) - known
    if unknown:
        revisions = ", ".join(sorted(unknown))
        raise NewerDatabaseError(f"was used by a newer version of the gateway (schema {revisions}): start that one")
    command.upgrade(config, "head")
