"""Kinds of databases by their URLs, and the error for an unusable one, without an import of the database library."""

SQLITE = "sqlite"
"""Value of `database` in a config for a file in the data directory; any other is the URL of a PostgreSQL database."""
SQLITE_FILE = "umg.db"


class StoreError(Exception):
    """Error for a database or storage that cannot be used. Its text is for the operator, and contains no password."""
