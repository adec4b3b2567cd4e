"""Version of the database schema, and the name of the table in which a database records its version."""

NEWEST_MIGRATION = "0034"
"""Newest revision in `migrations/versions`, which a test checks."""
VERSION_TABLE = "alembic_version"
