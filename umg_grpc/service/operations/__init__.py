"""Pipelines of the operations: one package for each, with its additions to the common steps."""
