"""The scripts of the JavaScript SDKs against the strict providers: they send and show the same as the Python SDKs, so
that a failure against the gateway is the gateway's.
"""

import asyncio

import pytest

from tests.support.providers.scenarios import TEXT
from tests.support.providers.strict_providers import KEY, provider
from tests.support.scenario_cases import SDK_CASES
from tests.world.sdk.node_runner import Node
from tests.world.sdk.node_sdks import BREAKS, FAILURES, LEAVES, SDKS, WAYS, Sdk, jobs

DRIVEN = [sdk for sdk in SDKS if "azure" not in sdk.options]
"""SDKs with the paths and the key header of the strict providers, which Azure's clients do not have."""


@pytest.mark.parametrize("sdk", DRIVEN, ids=lambda sdk: sdk.id)
async def test_the_sdk_shows_the_providers_message(sdk: Sdk, node: Node) -> None:
    cases = [case for case in SDK_CASES if case.id not in sdk.without]
    async with provider(sdk.format) as server:
        found = await node.run(sdk.script, jobs(cases), root=server.url, key=KEY, model=sdk.model, **sdk.options)
        assert server.refusals == []
    for case in cases:
        for way in WAYS:
            answer = found[f"{case.id} {way}"]
            assert answer.get("shown") == sdk.shows(case, case.expected_by_sdk(sdk.format)), (case.id, way, answer)
            if case.after:
                assert answer["second"]["text"] == sdk.after(case)


@pytest.mark.parametrize("sdk", DRIVEN, ids=lambda sdk: sdk.id)
async def test_a_failure_is_the_sdks_own_error(sdk: Sdk, node: Node) -> None:
    failing = [job for case in FAILURES for job in case.jobs()]
    async with provider(sdk.format) as server:
        found = await node.run(sdk.script, failing, root=server.url, key=KEY, model="m", **sdk.options)
    for case in FAILURES:
        # the vendor's own answer to a bad key is a 400
        status = 400 if (case.status, sdk.format) == (401, "native") else case.status
        for way in WAYS:
            error = found[f"{case.id} {way}"]["error"]
            assert (error["status"], error["class"]) == (status, sdk.error or case.error), (case.id, error)


@pytest.mark.parametrize("sdk", DRIVEN, ids=lambda sdk: sdk.id)
async def test_a_broken_stream_is_an_error_and_a_cancelled_one_stops_the_provider(sdk: Sdk, node: Node) -> None:
    async with provider(sdk.format) as server:
        found = await node.run(sdk.script, [BREAKS, LEAVES], root=server.url, key=KEY, model=sdk.model, **sdk.options)
        await asyncio.wait_for(server.left.wait(), 60)
    assert "the model fell over" in found["breaks"]["error"]["message"], found
    seen = found["leaves"]["shown"]["seen"]
    assert seen
    assert TEXT.startswith(seen)
