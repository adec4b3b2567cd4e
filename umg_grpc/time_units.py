"""Units of time spans in the config and on the command line."""

SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
"""Seconds of each unit; a number without a unit is in seconds."""
