"""Crash test of video tasks: gateways are killed at random while tasks of all families are in flight."""
