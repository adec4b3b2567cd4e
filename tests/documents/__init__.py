"""Rows and rules of the specification's documents, each with the tests that check them against a running service."""
