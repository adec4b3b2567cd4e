"""States of the playground: limits, budgets, models without a price, no models, no network."""

from collections.abc import Mapping
from itertools import count

import aiohttp
import pytest

from tests.support.gateways import KEY
from tests.world.pages.site import CHAT, WAITING, Site, no_complaint

NUMBERS = count(1)

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def key_with(site: Site, **settings: object) -> str:
    """Create a key with settings, in the JSON of the schema, and return its secret."""
    body = {"settings": {"name": f"key {next(NUMBERS)}", **settings}}
    secret = await _called(site, "CreateKey", body)
    assert isinstance(secret["secret"], str)
    return secret["secret"]


async def _called(site: Site, method: str, body: Mapping[str, object]) -> Mapping[str, object]:
    headers = {"authorization": f"Bearer {KEY}"}
    url = f"{site.gateway.url}/umg.v1.AdminService/{method}"
    async with aiohttp.ClientSession() as client, client.post(url, json=body, headers=headers) as response:
        assert response.status == 200, await response.text()
        found = await response.json()
    assert isinstance(found, dict)
    return found


async def begin_with(site: Site, key: str) -> None:
    await site.open()
    await site.use_key(key)
    await site.page.until("!document.getElementById('key-used').hidden")
    await site.page.until("document.getElementById('list-problems').ariaBusy === 'false'")


async def test_a_limit_states_which_one_it_is_and_when_it_ends(site: Site) -> None:
    await begin_with(site, await key_with(site, requestsPerMinute="1"))
    with no_complaint(site.page, refused=True):
        await site.send(CHAT, "one")
        await site.page.until("document.querySelector('.figures')")
        await site.send(CHAT, "two")
        await site.until_text(".failure", "The key has reached its limit of calls or tokens.")
        await site.until_text(".failure", "requests_per_minute: 1.")
        await site.until_text(".failure", "It can be tried again in ")


async def test_a_budget_is_shown_and_its_end_is_explained(site: Site) -> None:
    key = await key_with(site, budgetMicroCredits="10", budgetPeriod="BUDGET_PERIOD_DAY")
    await begin_with(site, key)
    with no_complaint(site.page, refused=True):
        await site.until_text("#key-budget", "0 of 0.00001 credits spent")
        await site.send(CHAT, "a long question " * 20)
        await site.until_text(".failure", "The budget of the key is spent.")
        await site.until_text(".failure", "The budget begins anew on ")
        await site.send(WAITING, "hello")
        await site.page.until("document.querySelectorAll('.failure').length === 2")
        assert "this model has no price" in (await site.texts(".failure"))[1]


async def test_a_key_without_models_is_explained(site: Site) -> None:
    await begin_with(site, await key_with(site, modelPatterns=["none-*"]))
    await site.until_text("#notice", "This key may use no models")
    await begin_with(site, await key_with(site, modelPatterns=["vid*"]))
    await site.until_text("#no-models", "This key has no models that do this.")


async def test_a_device_without_network_is_named_and_the_call_can_be_repeated(site: Site) -> None:
    network = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    await site.begin()
    try:
        await site.page.call("Network.enable", {})
        await site.page.call("Network.emulateNetworkConditions", {"offline": True, **network})
        with no_complaint(site.page, refused=True):
            await site.until_text("#offline", "This device is offline.")
            await site.send(CHAT, "hello")
            await site.until_text(".failure", "This device is offline. Connect it to the network, then retry.")
            assert await site.barriers() == []
    finally:
        await site.page.call("Network.emulateNetworkConditions", {"offline": False, **network})
    await site.page.until("document.querySelector('#offline').textContent === ''")
    await site.press_button("Retry")
    await site.page.until("document.querySelector('.figures')")


async def test_a_key_that_is_not_complete_is_not_sent_with_a_call(site: Site) -> None:
    await site.open()
    await site.fill("#prompt", "hello")
    await site.page.press("Enter")
    await site.until_text("#notice", "No key yet")
    assert await site.texts("article") == []
