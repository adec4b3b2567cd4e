"""Conversations that the gateway stores between calls: responses, message threads, and the reasoning that
clients omit.
"""
