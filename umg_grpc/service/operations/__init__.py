"""Additions of each operation to the steps of the pipeline, one room an operation."""
