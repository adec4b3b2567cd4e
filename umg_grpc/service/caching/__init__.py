"""Caches of one process: the response cache, and the choice of channels whose providers have a conversation in their
prompt caches.
"""
