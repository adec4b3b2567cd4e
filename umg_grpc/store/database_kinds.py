"""Constants and errors of databases that need no import of the database library."""

SQLITE = "sqlite"
"""Value of `database` in a config for a file in the data directory; any other is the URL of a PostgreSQL database."""
SQLITE_FILE = "umg.db"


class StoreError(Exception):
    """Error for a database or a storage of result files that cannot be used. Its message is for the operator, and
    contains no password.
    """
