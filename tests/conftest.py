"""Fixtures that several directories share."""

pytest_plugins = ["tests.databases"]
