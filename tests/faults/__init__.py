"""A provider that misbehaves on order, and the table of what callers are to see of it."""

from tests.faults.faults import FAULTS, NONE, Fault, Strikes
from tests.faults.orders import Order, struck
from tests.faults.server import Count, Upstream, faulty_upstream

__all__ = ["FAULTS", "NONE", "Count", "Fault", "Order", "Strikes", "Upstream", "faulty_upstream", "struck"]
