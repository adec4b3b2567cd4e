"""Conversion of channels of new-api: rows about its types of channels, their keys and their models."""
