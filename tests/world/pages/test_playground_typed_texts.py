"""Playground in a real browser: nothing that was typed, painted or chosen is lost, and nothing is sent twice."""

from pathlib import Path

import pytest

from tests.support.images import picture
from tests.world.pages.site import CHAT, IMAGE, Site, no_complaint

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def value(site: Site, field: str = "#prompt") -> str:
    return str(await site.page.evaluate(f"document.querySelector({field!r}).value"))


async def choose_kind(site: Site, name: str) -> None:
    await site.page.evaluate(
        f"[...document.querySelectorAll('#kinds a')].find(e => e.textContent === {name!r}).click()"
    )
    await site.page.until(f"document.querySelector('#kinds [aria-current=page]')?.textContent === {name!r}")
    await site.page.until("!document.getElementById('view').matches(':empty')")


async def test_each_kind_keeps_its_text_and_its_model_while_another_one_is_shown(site: Site) -> None:
    await site.begin("image")
    with no_complaint(site.page):
        await site.choose(IMAGE)
        await site.fill("#prompt", "a long description")
        await choose_kind(site, "Video")
        assert await value(site) == ""
        await site.fill("#prompt", "a film of it")
        await choose_kind(site, "Image")
        assert (await value(site), await value(site, "#models input")) == ("a long description", IMAGE)
        await site.press_button("+ New")
        await site.page.until("document.querySelector('#prompt').value === ''")
        await choose_kind(site, "Video")
        assert await value(site) == "a film of it"


async def test_a_call_without_its_texts_is_refused_with_a_sentence(site: Site) -> None:
    await site.begin("image")
    with no_complaint(site.page):
        await site.choose(IMAGE)
        await site.click("#send")
        await site.until_text("form [role=alert]", "fill in the fields")
        await site.fill("#prompt", "a kite")
        await site.click("#send")
        await site.page.until("document.querySelector('#result figure img')")
        assert await site.texts("form [role=alert]") == [""]


async def test_a_painted_mask_stays_when_the_model_is_changed(site: Site, tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(picture("PNG", (256, 256)))
    await site.begin("edit")
    with no_complaint(site.page):
        await site.choose(IMAGE)
        await site.add_files("#view input[type=file]", tmp_path / "photo.png")
        await site.page.evaluate("document.querySelector('#view details').open = true")
        await site.page.until("document.querySelector('#view canvas').width === 256")
        await site.page.evaluate("document.querySelector('#view canvas').focus()")
        await site.page.press(" ")
        await site.fill("#prompt", "a red roof")
        await site.until_text("#code code", '"mask"')
        await site.choose("imgC-1-mini")
        await site.until_text("#code code", "imgC-1-mini")
        assert '"mask"' in (await site.texts("#code code"))[0]


async def test_a_blocked_prompt_is_named(site: Site) -> None:
    await site.begin()
    with no_complaint(site.page, refused=True):  # records that are not written yet
        await site.send(CHAT, "something [[block]]")
        await site.until_text("#view", "The provider's safety system refused the prompt (SAFETY).")


async def test_editing_a_message_keeps_the_one_that_was_being_written(site: Site) -> None:
    await site.begin()
    with no_complaint(site.page, refused=True):
        await site.send(CHAT, "the first message")
        await site.page.until("document.querySelector('.figures')")
        await site.fill("#prompt", "half a mess")
        await site.press_button("Edit", ".user")
        assert await value(site) == "the first message"
        await site.press_button("Cancel editing")
        assert await value(site) == "half a mess"
