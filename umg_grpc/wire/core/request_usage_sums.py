"""Sums of the usage of several requests."""

from umg_grpc.v1 import pb


def add_usage(total: pb.Usage, other: pb.Usage) -> None:
    """Add the numbers of `other` to `total`. The total is estimated if `total` or `other` is."""
    for field, value in other.ListFields():
        if field.type == field.TYPE_INT32:
            setattr(total, field.name, getattr(total, field.name) + value)
    total.estimated = total.estimated or other.estimated
