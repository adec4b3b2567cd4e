"""Channels to providers over HTTP."""
