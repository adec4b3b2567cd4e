"""Caches of one process: its own cache of responses, and the choice of channels by the prompt caches of their
providers.
"""
