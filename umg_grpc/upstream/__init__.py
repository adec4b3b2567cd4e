"""Upstream side: calls of model providers over HTTP, of models that run on this machine, and of a simulator."""
