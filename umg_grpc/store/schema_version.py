"""Version of the schema, and the table that has it."""

HEAD = "0012"
"""Newest revision in `migrations/versions`, which a test checks."""
VERSION_TABLE = "alembic_version"
