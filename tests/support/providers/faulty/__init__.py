"""Fake provider that misbehaves on command: the path of a request selects the fault."""

from tests.support.providers.faulty.fault_plans import Order, struck
from tests.support.providers.faulty.faults import FAULTS, NONE, Fault, Strikes
from tests.support.providers.faulty.server import Count, Upstream, faulty_upstream

__all__ = ["FAULTS", "NONE", "Count", "Fault", "Order", "Strikes", "Upstream", "faulty_upstream", "struck"]
