"""Snapshots: inputs of each text format, and beside each its form for every other format."""
