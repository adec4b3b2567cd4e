"""Kinds of databases and their error, without the library that calls them."""

SQLITE = "sqlite"
"""Value of `database` in a config for a file in the data directory; any other is the URL of a PostgreSQL database."""
SQLITE_FILE = "umg.db"


class StoreError(Exception):
    """Error for a database that cannot be used. The text is for the operator, and does not contain the password."""
