"""Report of the model lists of providers that could not be read, for operators."""

import time
from collections.abc import Iterable

from umg_grpc.base.printable_text import printable
from umg_grpc.base.time_units import age_text
from umg_grpc.v1 import pb


def failed_lists(lists: Iterable[pb.ProviderModelList]) -> list[str]:
    """Return a line for each list that could not be read: channel, failure, age, remedy, models listed instead."""
    return [printable(_line(each)) for each in lists if each.problem]


def _line(state: pb.ProviderModelList) -> str:
    now = time.time()
    kind = f"{state.kind}, " if state.kind else ""
    failed = age_text(now - state.failure_time.ToNanoseconds() / 1e9)
    used = "no list was read yet"
    if state.HasField("read_time"):
        used = f"the list of {age_text(now - state.read_time.ToNanoseconds() / 1e9)} ago is used"
    return f"{state.channel}: {kind}{failed} ago: {state.problem}; {used}"
