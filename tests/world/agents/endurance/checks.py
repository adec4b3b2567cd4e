"""Checks of a long run: requests of the program and of the gateway, the provider's bill, the ledger and the log."""

import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tests.proofs.cache.cached_provider import secrets_of
from tests.proofs.cache.prompts import prompt_of
from tests.support.providers.server import Json
from tests.world.agents.endurance.run import LongRun
from tests.world.agents.endurance.task import PART, PATTERN
from tests.world.agents.golden import PATHS

ERROR = re.compile(r'"level": ?"(?:error|critical)"')
MICRO = 1_000_000
"""Parts of a micro-credit in which the bills are."""


def problems(run: LongRun) -> Iterator[str]:
    """Yield all in which the run differs from the plan."""
    plan, task = run.case.plan, run.task
    yield from task.problems
    if not run.answered:
        yield f"exit status {run.finished.status}: {run.finished.printed[-600:]}"
    if task.turn != plan.turns + 1:
        yield f"{task.turn} turns instead of {plan.turns + 1}"
    if not task.compactions:
        yield "there was no compaction"
    if task.failures != len(plan.failing):
        yield f"{task.failures} failures of the provider instead of {len(plan.failing)}"
    yield from (f"the provider refused: {refusal}" for refusal in run.refusals)
    yield from (f"the gateway logged: {line[:400]}" for line in run.log if ERROR.search(line))
    yield from _refused(run)
    yield from _differing(run)
    yield from _billed(run)


def _refused(run: LongRun) -> Iterator[str]:
    """Yield the responses that are no success. A connection that the restarting gateway did not take has none."""
    unanswered = 0
    for exchange in run.exchanges:
        unanswered += exchange.status == 0
        if exchange.status and not 200 <= exchange.status < 300 and exchange.method != "HEAD":
            yield f"{exchange.method} {exchange.path}: {exchange.status} {exchange.answer[:300].decode(errors='replace')}"
    if unanswered != run.connections_refused:
        yield f"{unanswered} requests without a response, {run.connections_refused} while the gateway started"


def _differing(run: LongRun) -> Iterator[str]:
    """Yield the requests of which the provider got other results than the program sent, and moved prefixes."""
    wire, protocol = run.case.case.settings.format, run.case.upstream.format
    sent = [
        json.loads(each.body)
        for each in run.exchanges
        if each.method == "POST" and PATHS[wire].fullmatch(each.path) and each.status
    ]
    received = [each for each in run.received if each.method == "POST" and PATHS[protocol].fullmatch(each.path)]
    accounts = defaultdict[str, list[Json]](list)
    for each in received:
        accounts[max(secrets_of(each))].append(json.loads(each.body))
    ours = Counter(map(_parts, sent))
    theirs = Counter(_parts(body) for bodies in accounts.values() for body in bodies)
    for parts, count in (ours - theirs).items():
        yield f"{count} requests with {len(parts)} results up to {parts[-1:]} did not reach the provider"
    if (repeated := (theirs - ours).total()) != run.task.failures:
        yield f"the provider got {repeated} requests more than the program sent, for {run.task.failures} failures"
    read = {number for parts in theirs for number in parts}
    if missing := set(run.case.plan.texts(pictures=run.case.running.pictures)) - read:
        yield f"the provider never got the parts {sorted(missing)}"
    before = _moved(wire, sent) + run.task.compactions * run.case.running.ends_with_summary
    for bodies in accounts.values():  # each has a cache, and reasoning that only it can read
        if (after := _moved(protocol, bodies)) > before:
            yield f"the prefix moved {before} times at the program and {after} times at the provider"


def _parts(body: Json) -> tuple[int, ...]:
    return tuple(sorted(int(number) for number in PART.findall(json.dumps(body))))


def _moved(wire_format: str, bodies: Sequence[Json]) -> int:
    texts = [prompt_of(wire_format, body).text for body in bodies if body.get("tools")]
    texts = [text for text in texts if PATTERN.search(text.decode())]
    return sum(not later.startswith(earlier) for earlier, later in itertools.pairwise(texts))


def _billed(run: LongRun) -> Iterator[str]:
    bill = len(run.bills), sum(-(-each.cost // MICRO) for each in run.bills)
    if bill != (run.ledger.calls, run.ledger.micro_credits):
        yield f"the provider billed {bill[0]} calls and {bill[1]} micro-credits, the ledger has {run.ledger}"
