"""Conversations stored between calls: responses, message threads, and reasoning that clients do not send back."""
