"""Table of faults: for every fault, a caller receives in time a complete right answer or an error of its own format;
never a wrong answer, nor a part of one that looks complete.
"""

import asyncio
import time
import traceback
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from tests.pairs.faults.gateway import WAITED_FOR, config
from tests.pairs.faults.table import ALONE, FORMATS, WAYS, Case, cases
from tests.proofs.soak.callers import Callers, callers
from tests.proofs.soak.questions import HTTP, TEXT
from tests.support.gateways import KEY, running
from tests.support.providers.faulty.faults import Strikes
from tests.support.providers.faulty.right_answers import TEXT_FORMATS
from tests.support.providers.faulty.server import faulty_upstream
from umg_grpc.service.pipeline import early_response_headers

AT_ONCE = 24
"""Concurrent calls of the faults that end by themselves. Calls of faults that only a deadline ends are all made
together.
"""
LIMIT = 45.0
"""Seconds of a call: every channel is called twice at most, for 2 s each, and the rest allows for a busy machine. A
call that waits without need takes 60 s.
"""


async def problem_of(calling: Callers, case: Case) -> str:
    """Call as the case describes. Return the problem with the result, "" for nothing."""
    began = time.perf_counter()
    called = await calling.call(case.question, case.model, case.nonce)
    seconds = time.perf_counter() - began
    if seconds > LIMIT:
        return f"{case.id}: took {seconds:.1f} s: {called.detail}"
    return case.problem(called)


async def problems(calling: Callers, table: list[Case]) -> list[str]:
    """Return the problems of all cases. Cases that wait for a deadline run all at once, the others some at a time."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def in_turn(case: Case) -> str:
        async with turn:
            return await problem_of(calling, case)

    slow = [case for case in table if case.fault.name.startswith(WAITED_FOR)]
    swift = [case for case in table if not case.fault.name.startswith(WAITED_FOR)]
    found = await asyncio.gather(*(problem_of(calling, case) for case in slow), *(in_turn(case) for case in swift))
    return [problem for problem in found if problem]


def logged(log: Iterable[EventDict]) -> Iterator[str]:
    """Yield the log entries of errors and exceptions."""
    for entry in log:
        error = entry.get("exc_info")
        if isinstance(error, BaseException) or entry["log_level"] == "error":
            traced = traceback.format_exception(error) if isinstance(error, BaseException) else []
            yield f"{entry}\n{''.join(traced)}"


def test_every_face_meets_faults_of_every_kind() -> None:
    called = [case for protocol in TEXT_FORMATS for case in cases(protocol, ALONE)]
    met = {(case.question.format, case.strikes) for case in called if case.question.over == HTTP}
    assert met == set(product(TEXT, Strikes))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("protocol", FORMATS)
async def test_callers_get_a_complete_answer_or_an_error_for_every_fault(
    protocol: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # else headers are sent before the deadline of a fault, which has no status of its own then
    monkeypatch.setattr(early_response_headers, "ANSWERED_SECONDS", 60.0)
    table = cases(protocol, way)
    with capture_logs() as log:
        async with faulty_upstream() as upstream, running(config(upstream, protocol, way, table), tmp_path) as gateway:
            async with callers(gateway.url, gateway.grpc, KEY) as calling:
                found = await problems(calling, table)
            waiting = await upstream.still_at_work()
    assert not found, f"{len(found)} of {len(table)}:\n" + "\n".join([*found, *logged(log)])
    assert not [entry for entry in log if "exc_info" in entry or entry["log_level"] == "error"], "\n".join(logged(log))
    assert not waiting, "providers that nobody waits for still work"
