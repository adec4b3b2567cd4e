"""History of the playground: kept in the browser, restored, exported, deleted, and limited."""

import json
from pathlib import Path

import pytest

from tests.support.images import PNG
from tests.world.pages.site import CHAT, Site, no_complaint

ENTRIES = """import('/assets/playground/history-store.js').then(({HistoryStore}) => new HistoryStore().entries())"""
CLEAR = "import('/assets/playground/history-store.js').then(({HistoryStore}) => new HistoryStore().clear())"
LIMITED = """import('/assets/playground/history-store.js').then(async ({HistoryStore}) => {
  const store = new HistoryStore(1000);
  for (let time = 1; time <= 5; time++) await store.put({id: `${time}`, kind: 'chat', title: '', model: '', time, saved: 'x'.repeat(300)});
  return (await store.entries()).map(({id}) => id);
})"""

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def converse(site: Site, question: str) -> None:
    await site.send(CHAT, question)
    await site.until_text(".entries .entry[aria-current=true]", question)


async def test_a_conversation_is_restored_after_a_reload_and_goes_on(site: Site) -> None:
    await site.begin()
    await site.page.evaluate(CLEAR)
    await site.begin()
    with no_complaint(site.page):
        await site.write_system_prompt("be brief")
        await converse(site, "the first question")
        response = (await site.texts("article.model .markdown"))[0]
    await site.begin()
    with no_complaint(site.page):
        await site.until_text(".entries .entry", "the first question")
        await site.click(".entries .entry")
        await site.page.until("document.querySelector('article.model .markdown')")
        assert await site.texts("article.model .markdown") == [response]
        assert await site.page.evaluate("document.querySelector('#system').value") == "be brief"
        await site.send(CHAT, "the second question")
        await site.page.until("document.querySelectorAll('article.model .markdown').length === 2")
        await site.page.until("document.querySelector('.figures')")
        assert len(await site.texts(".entries .entry")) == 1


async def test_files_are_kept_only_if_wanted(site: Site, tmp_path: Path) -> None:
    picture = tmp_path / "kite.png"
    picture.write_bytes(PNG)
    for is_kept in (False, True):
        await site.begin()
        await site.page.evaluate(CLEAR)
        await site.begin()
        if is_kept:
            await site.click("#history input[type=checkbox]")
        await site.choose(CHAT)
        await site.add_files(".composer input[type=file]", picture)
        await site.page.until("document.querySelector('.files img')")
        await converse(site, "describe it")
        (entry,) = await site.page.evaluate(ENTRIES)
        parts = entry["saved"]["exchanges"][0]["user"]["parts"]
        assert ("media" in parts[1]) is is_kept
        assert is_kept or parts[1]["text"]["text"] == "[file kite.png, not kept]"


async def test_all_is_deleted_at_the_second_press(site: Site) -> None:
    await site.begin()
    with no_complaint(site.page):
        await converse(site, "a question to be deleted")
        count = len(await site.texts(".entries .entry"))
        await site.press_button("Delete all", "#history")
        await site.press_button(f"Delete all {count}", "#history")
        await site.until_text(".entries", "Conversations and results appear here.")
        assert await site.page.evaluate(ENTRIES) == []


async def test_all_is_exported_as_json(site: Site) -> None:
    await site.begin()
    with no_complaint(site.page):
        await converse(site, "a question to be exported")
        exported = await site.page.evaluate(
            """new Promise(done => {
              const create = URL.createObjectURL;
              URL.createObjectURL = (blob) => { blob.text().then(done); return create.call(URL, blob); };
              [...document.querySelectorAll('#history button')].find(e => e.textContent === 'Export all').click();
            })"""
        )
    assert "a question to be exported" in [entry["title"] for entry in json.loads(exported)]


async def test_the_oldest_go_first_beyond_the_limit(site: Site) -> None:
    await site.begin()
    await site.page.evaluate(CLEAR)
    assert await site.page.evaluate(LIMITED) == ["5", "4"]
    await site.page.evaluate(CLEAR)
