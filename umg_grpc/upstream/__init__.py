"""Channels to model providers, including models that run in child processes of the gateway or in the gateway itself."""
