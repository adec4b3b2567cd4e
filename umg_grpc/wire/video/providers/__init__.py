"""Protocols of video providers, one module each, and the parts that they share."""
