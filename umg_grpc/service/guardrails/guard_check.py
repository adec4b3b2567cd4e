"""Check whether the guards of a config work, for `umg check --live`: each gets one text to check."""

import asyncio
from collections.abc import Sequence

from umg_grpc.service.channel_check import CheckResult
from umg_grpc.service.guardrails.guard_interface import Guard, GuardFailedError
from umg_grpc.service.guardrails.guard_plan import Guards
from umg_grpc.v1 import pb

CHECKED_TEXT = "Hello"


async def check_guards(guards: Guards | None) -> Sequence[CheckResult]:
    """Check all guards at the same time. Return the results in the order of the guards."""
    return await asyncio.gather(*map(_check, guards.all if guards is not None else ()))


async def _check(guard: Guard) -> CheckResult:
    name, seconds = f"guard {guard.row.name}", guard.row.timeout
    text = pb.GuardedText(path="messages[0].parts[0].text.text", text=CHECKED_TEXT, role=pb.ROLE_USER)
    request = pb.CheckRequest(guard=guard.row.name, phase=pb.GUARD_PHASE_REQUEST, texts=[text])
    try:
        async with asyncio.timeout(seconds):
            response = await guard.check(request)
    except TimeoutError:
        return CheckResult(name, False, f"no decision within {seconds:g} s: check its address and `timeout`")
    except GuardFailedError as error:
        return CheckResult(name, False, f"{error}: check its address and `headers`")
    if (decision := response.WhichOneof("decision")) is None:
        return CheckResult(name, False, "a response without a decision")
    return CheckResult(name, True, f"decides `{decision}` on {CHECKED_TEXT!r}")
