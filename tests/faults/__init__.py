"""Provider that misbehaves on command, and the table of the results that callers must receive."""

from tests.faults.fault_plans import Order, struck
from tests.faults.faults import FAULTS, NONE, Fault, Strikes
from tests.faults.server import Count, Upstream, faulty_upstream

__all__ = ["FAULTS", "NONE", "Count", "Fault", "Order", "Strikes", "Upstream", "faulty_upstream", "struck"]
