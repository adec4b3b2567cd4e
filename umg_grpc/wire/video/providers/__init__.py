"""Protocols of video providers, one module each, and the functions that they share."""
