"""Playground in a real browser: nothing that was typed, painted or chosen is lost, and nothing is sent twice."""

from pathlib import Path

import pytest

from tests.support.images import picture
from tests.world.pages.site import CHAT, IMAGE, VIDEO, Site, no_complaint

RUNNING_TASKS = 7
"""More than the connections that a browser opens to one host."""

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


async def test_running_tasks_leave_connections_for_other_calls_and_the_focus_at_their_buttons(site: Site) -> None:
    await site.begin("video")
    with no_complaint(site.page, refused=True):
        await site.choose(VIDEO)
        for number in range(RUNNING_TASKS):
            await site.page.evaluate("document.querySelector('#prompt').select()")
            await site.fill("#prompt", f"kite {number} [[slow]]")
            await site.click("#send")
            await site.page.until(f"document.querySelector('.tasks strong')?.textContent.startsWith('kite {number} ')")
        await site.page.evaluate("document.querySelector('.tasks > li:first-child .actions button').focus()")
        await site.page.until("/[1-9]\\d* %/.test(document.querySelector('.tasks > li:first-child').textContent)")
        assert await site.page.evaluate("document.activeElement.textContent") == "Cancel task"
        assert await site.page.evaluate("fetch('/readyz').then((response) => response.status)") == 200


async def test_a_remix_is_sent_once(site: Site) -> None:
    await site.begin("video")
    with no_complaint(site.page, refused=True):
        await site.choose(VIDEO)
        await site.fill("#prompt", "a boat to be remixed")
        await site.click("#send")
        await site.page.until("document.querySelector('.tasks > li:first-child video')")
        row = await site.page.evaluate("`[data-task=${document.querySelector('.tasks > li').dataset.task}]`")
        await site.press_button("Remix", row)
        await site.press_button("Remix", row)
        assert len(await site.texts(f"{row} form")) == 1
        await site.fill(f"{row} form input", "at night")
        before = len(await site.texts(".tasks > li"))
        await site.page.evaluate(
            f"(form => (form.requestSubmit(), form.requestSubmit()))(document.querySelector('{row} form'))"
        )
        await site.until_text(".tasks > li:first-child", "remix of")
        await site.page.until("document.querySelector('.tasks > li:first-child video')")
        assert len(await site.texts(".tasks > li")) == before + 1
