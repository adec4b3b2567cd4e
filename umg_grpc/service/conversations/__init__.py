"""Stored responses, message threads, and the reasoning state of conversations."""
