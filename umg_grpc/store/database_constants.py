"""Constants and errors of databases that need no import of the database library."""

SQLITE_KIND = "sqlite"
"""Value of `database` in a config for a file in the data directory; any other is the URL of a PostgreSQL database."""
SQLITE_FILE = "umg.db"
READY_SECONDS = 1.0
"""Largest difference to the clock of the database with which a process is ready."""
TRUSTED_SECONDS = 5.0
"""Largest difference with which a process deletes or gives up anything because of its age."""


class StoreError(Exception):
    """Error for an unusable database or storage of result files. Its message (for operators) has no password."""
