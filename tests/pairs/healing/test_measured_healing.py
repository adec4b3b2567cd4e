"""Healing measured on literal refusals of public reports: the mended request succeeds at the second attempt."""

from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import ClientSession

from tests.pairs.healing.refusing_vendor import BODIES, REFUSALS, RefusingVendor, channels, path_of
from tests.support.gateways import running
from tests.support.providers.server import serve_provider

MIN_REFUSALS = 60
MIN_HEALED = 0.9


class Outcome(NamedTuple):
    """Outcome of the call that provokes a refusal."""

    source: str
    status: int
    attempts: int
    dropped: str


async def outcomes(data: Path, *, held_out: bool) -> list[Outcome]:
    """Return the outcomes of the calls that provoke the refusals which were, or were not, set aside."""
    found = []
    async with (
        serve_provider(RefusingVendor()) as vendor,
        running(channels(vendor.url), data) as gateway,
        ClientSession(headers=gateway.headers) as session,
    ):
        for index, refusal in enumerate(REFUSALS):
            if refusal.held_out != held_out:
                continue
            model, before = f"{refusal.protocol}-{index}", len(vendor.received)
            body = {"model": model, **BODIES[refusal.protocol], **refusal.sent}
            async with session.post(gateway.url + path_of(refusal.protocol, model), json=body) as response:
                await response.read()
                dropped = response.headers.get("x-umg-dropped", "")
            found.append(Outcome(refusal.source, response.status, len(vendor.received) - before, dropped))
    return found


@pytest.mark.parametrize("held_out", [False, True], ids=["known to the table", "set aside"])
async def test_nine_of_ten_refusals_are_healed_at_the_second_attempt(held_out: bool, tmp_path: Path) -> None:
    found = await outcomes(tmp_path, held_out=held_out)
    failed = [outcome for outcome in found if (outcome.status, outcome.attempts) != (200, 2)]
    assert all(outcome.attempts <= 2 for outcome in found)
    assert len(found) - len(failed) >= MIN_HEALED * len(found), failed


def test_every_third_of_the_reports_is_set_aside_by_its_place() -> None:
    assert len(REFUSALS) >= MIN_REFUSALS
    assert [refusal.source for refusal in REFUSALS] == sorted((each.source for each in REFUSALS), key=str.lower)
    assert [refusal.held_out for refusal in REFUSALS] == [index % 3 == 2 for index in range(len(REFUSALS))]
