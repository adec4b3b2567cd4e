"""Sign-on of people in Chromium: at a certified issuer, and by a link of the start."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path

from tests.support.chromium import Page, chromium
from tests.support.gateways import SANDBOX, running
from tests.world.sign_on.issuer_process import CLIENT, SECRET, running_issuer
from umg_grpc.access.api_keys import ApiKeys

ARRIVAL_SECONDS = 120


async def found(page: Page, script: str) -> str:
    """Return the value of a script once it is a text that is not empty, in this document or one that follows it."""
    async with asyncio.timeout(ARRIVAL_SECONDS):
        while True:
            with suppress(AssertionError):  # the document was replaced meanwhile
                if value := await page.evaluate(f"document.readyState === 'complete' ? {script} : ''"):
                    return str(value)


async def test_a_person_signs_in_at_an_issuer_in_a_browser(tmp_path: Path) -> None:
    async with running_issuer() as issuer, chromium(tmp_path / "chromium") as page:
        config = f"""{SANDBOX}
sign_on:
  issuers:
    - name: company
      issuer: {issuer.url}
      client_id: {CLIENT}
      client_secret: {SECRET}
      roles: [{{value: admins, role: owner}}]
"""
        async with running(config, tmp_path / "gateway") as gateway:
            await issuer.configure(redirect=f"{gateway.url}/auth/callback", groups=["admins"])
            await page.open(f"{gateway.url}/auth/login?return=/auth/me")
            await found(page, "document.querySelector('.button')?.textContent ?? ''")
            await page.evaluate("document.querySelector('.button').click()")
            await found(page, "document.querySelector('[name=login]') ? 'login' : ''")
            await page.evaluate(
                "document.querySelector('[name=login]').value = 'ada';"
                "document.querySelector('[name=password]').value = 'any'; document.forms[0].submit()"
            )
            await found(page, "document.querySelector('[value=consent]') ? 'consent' : ''")
            await page.evaluate("document.forms[0].submit()")
            me = json.loads(await found(page, "location.pathname === '/auth/me' ? document.body.innerText : ''"))
            assert (me["name"], me["roles"]) == ("Ada", [{"account_id": "", "role": "owner"}])
            assert await page.evaluate("document.cookie") == ""


async def test_a_link_of_the_start_opens_a_session_in_a_browser(tmp_path: Path) -> None:
    async with chromium(tmp_path / "chromium") as page, running(SANDBOX, tmp_path / "gateway") as gateway:
        key = await ApiKeys(gateway.service.store).get("bootstrap")
        code = await gateway.service.sign_on.new_code(key.key_id)
        await page.open(f"{gateway.url}/auth/login?return=/auth/me#code={code}")
        me = json.loads(await found(page, "location.pathname === '/auth/me' ? document.body.innerText : ''"))
        assert me["key_id"] == key.key_id
        assert code not in "".join(page.log)
