"""Playground in a real browser: key, models, conversations, failures, keyboard, phone."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.gateways import running
from tests.support.images import PNG
from tests.support.page_checks import contrast_faults, layout_faults
from tests.world.pages.site import CHAT, PHONE, SANDBOX, SCREENSHOTS, WAITING, Site, no_complaint, text_of
from umg_grpc.access.api_keys import ApiKeys

KINDS = ("chat", "count", "embed", "rerank", "image", "edit", "video")
LAST = "#log .exchange:last-child"
COMPLETE = "document.getElementById('log').getAttribute('aria-busy') === 'false'"
REASONS = """{
  const label = [...document.querySelectorAll('#settings label')].find(e => e.textContent === 'reasoning');
  const select = document.getElementById(label.htmlFor);
  select.selectedIndex = 1;
  select.dispatchEvent(new Event('input'));
}"""
"""Script that sets the reasoning of a model on."""
HOSTILE = """# <img src=x onerror=alert(1)>

<script>alert(1)</script>

**bold** <b>b</b> [link](https://example.org/) [bad](javascript:alert(1)) ![picture](https://example.org/a.png)

- one
- two &amp; more

| a | b |
|---|--:|
| 1 | 2 |

```py
print("</code><script>alert(1)</script>")
```
"""

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_response_appears_word_by_word(site: Site) -> None:
    site.provider.go_on.clear()
    await site.begin()
    with no_complaint(site.page):
        await site.send(WAITING, "count")
        await site.page.until(f"{text_of('article.model .part')} === 'one '")  # the provider has not sent the rest
        assert await site.page.evaluate("document.getElementById('log').getAttribute('aria-busy')") == "true"
        site.provider.go_on.set()
        await site.page.until(f"{text_of('article.model .part')} === 'one two'")
        await site.page.until(COMPLETE)
        assert await site.texts("article.user .plain") == ["count"]
        assert await site.page.evaluate(text_of("#health")) == "Gateway: ready"


async def test_a_stopped_response_is_cancelled_at_the_provider_and_marked(site: Site) -> None:
    site.provider.go_on.clear()
    site.provider.left.clear()
    await site.begin()
    await site.send(WAITING, "count")
    await site.page.until(f"{text_of('article.model .part')} === 'one '")
    await site.page.press("Escape")
    await asyncio.wait_for(site.provider.left.wait(), 60)
    await site.until_text("article.model", "Stopped by you: this is a part of the response.")
    assert await site.texts("article.model .part") == ["one "]


async def test_each_response_has_its_time_tokens_cost_and_request_id(site: Site) -> None:
    await site.begin()
    with no_complaint(site.page, refused=True):  # the record is written two seconds after the call
        await site.send(CHAT, "a red kite over a lake")
        await site.until_text(".figures", " tokens")
        await site.page.until("/^0\\.\\d+ credits$/.test(document.querySelector('.cost').textContent)")
        figures = (await site.texts(".figures"))[0]
        request_id = (await site.texts(".request-id code"))[0]
    assert "first output after" in figures
    assert request_id
    story = (await site.texts(".story dl"))[0]
    assert "channelsandbox" in story
    assert "by sandbox" in (await site.texts(".figures"))[0]
    assert "statusOK" in story


async def test_a_conversation_goes_on_is_edited_and_made_again(site: Site) -> None:
    await site.begin()
    with no_complaint(site.page):
        await site.send(CHAT, "first question")
        await site.page.until(f"document.querySelector('.figures') && {COMPLETE}")
        await site.send(CHAT, "second question")
        await site.page.until(f"document.querySelectorAll('.figures').length === 2 && {COMPLETE}")
        first, second = await site.texts("article.model .markdown")
        await site.press_button("Regenerate", f"{LAST}")
        await site.page.until(f"document.querySelectorAll('.figures').length === 2 && {COMPLETE}")
        assert await site.texts("article.model .markdown") == [first, second]  # the simulated model repeats itself
        await site.page.evaluate("document.getElementById('prompt').focus()")
        await site.page.press("ArrowUp")
        await site.page.until("document.getElementById('prompt').value === 'second question'")
        await site.page.evaluate("document.getElementById('prompt').select()")
        await site.page.write("third question")
        await site.page.press("Enter")
        await site.page.until(f"document.querySelectorAll('.figures').length === 2 && {COMPLETE}")
        assert await site.texts("article.user .plain") == ["first question", "third question"]


async def test_settings_follow_the_model_and_reach_it(site: Site) -> None:
    await site.begin()
    with no_complaint(site.page):
        await site.choose("famR-1")
        assert "reasoning" in await site.texts("#settings label")
        await site.choose("a-model-of-another-gateway")
        assert "reasoning effort" in await site.texts("#settings label")
        await site.until_text(".picker p", "is not listed. It is called as it is written.")
        await site.choose(CHAT)
        await site.fill("#settings input", "3")  # maximum tokens
        await site.send(CHAT, "a long story")
        await site.until_text("article.model", "Cut at the maximum number of tokens")


async def test_reasoning_is_folded(site: Site) -> None:
    await site.begin()
    with no_complaint(site.page):
        await site.choose("famR-1")
        await site.page.evaluate(REASONS)
        await site.send("famR-1", "why is the sky blue")
        await site.page.until(f"document.querySelector('.figures') && {COMPLETE}")
        folded = "[...document.querySelectorAll('details.reasoning')].map(e => [e.open, e.innerText.length > 9])"
        assert await site.page.evaluate(folded) == [[False, True]]


async def test_tools_are_called_and_their_results_are_sent(site: Site) -> None:
    await site.begin()
    with no_complaint(site.page):
        await site.choose(CHAT)
        await site.page.evaluate("document.querySelector('#settings > div > details').open = true")
        await site.press_button("Add tool")
        await site.fill("fieldset input", "weather_of_city")
        await site.send(CHAT, "call weather_of_city")
        await site.until_text("article.model .badge", "calls weather_of_city")
        await site.fill(".results textarea", "sunny, 21 degrees")
        await site.press_button("Send results")
        await site.page.until(f"document.querySelectorAll('.step').length === 2 && {COMPLETE}")
        assert "sunny" in (await site.texts(".step:last-of-type"))[-1]


async def test_two_models_respond_side_by_side(site: Site) -> None:
    await site.begin()
    with no_complaint(site.page):
        await site.choose(CHAT)
        await site.click("#compare")
        await site.choose("famO-5", 1)
        await site.fill("#prompt", "compare this")
        await site.page.press("Enter")
        await site.page.until(f"document.querySelectorAll('.figures').length === 2 && {COMPLETE}")
        assert await site.texts("article.model h3") == [CHAT, "famO-5"]


async def test_a_phone_shows_one_of_two_responses_at_a_time(site: Site) -> None:
    await site.begin(size=PHONE)
    shown = "[...document.querySelectorAll('article.model')].map(e => e.checkVisibility())"
    with no_complaint(site.page):
        await site.choose(CHAT)
        await site.click("#compare")
        await site.choose("famO-5", 1)
        await site.fill("#prompt", "compare this")
        await site.page.press("Enter")
        await site.page.until(f"document.querySelectorAll('.figures').length === 2 && {COMPLETE}")
        assert await site.page.evaluate(shown) == [True, False]
        await site.press_button("famO-5", ".tabs")
        assert await site.page.evaluate(shown) == [False, True]
        assert await site.barriers() == []


async def test_the_end_of_a_growing_response_is_followed(site: Site) -> None:
    await site.begin(size=(1366, 500))
    hidden = """Math.round(document.querySelector('#log').getBoundingClientRect().bottom
      - document.querySelector('.composer').getBoundingClientRect().top)"""
    with no_complaint(site.page):
        for number in range(3):
            await site.send(CHAT, f"question {number}")
            await site.page.until(f"document.querySelectorAll('.figures').length === {number + 1} && {COMPLETE}")
        assert await site.page.evaluate("scrollY") > 0
        assert await site.page.evaluate(hidden) <= 0


async def test_an_image_in_a_response_is_shown_in_it(site: Site) -> None:
    await site.begin()
    with no_complaint(site.page):
        await site.send("famG-2.5-flash-image", "draw a red kite")
        await site.page.until(f"document.querySelector('article.model img') && {COMPLETE}")
        assert await site.page.evaluate("document.querySelector('article.model img').decode().then(() => true)")


async def test_an_address_opens_a_kind_and_a_model(site: Site) -> None:
    await site.open("/playground?kind=embed&model=text-embedding-3-large")
    with no_complaint(site.page):
        await site.use_key()
        await site.page.until("document.querySelector('#models input').value === 'text-embedding-3-large'")
        assert await site.texts("#kinds [aria-current]") == ["Embed"]


async def test_files_are_sent_where_the_model_reads_them(site: Site, tmp_path: Path) -> None:
    picture = tmp_path / "red.png"
    picture.write_bytes(PNG)
    await site.begin()
    with no_complaint(site.page):
        await site.choose(CHAT)
        await site.add_files(".composer input[type=file]", picture)
        await site.page.until("document.querySelector('.files img')")
        await site.send(CHAT, "describe it")
        await site.page.until(f"document.querySelector('.figures') && {COMPLETE}")
        assert await site.page.evaluate("document.querySelectorAll('article.user img').length") == 1


async def test_texts_of_models_are_elements_and_never_html(site: Site) -> None:
    """Also where the text comes in pieces of any length."""
    await site.begin()
    show = """(async (source, size) => {
      const { MarkdownText } = await import("/assets/playground/markdown.js");
      const text = new MarkdownText();
      for (let at = 0; at < source.length; at += size) { text.append(source.slice(at, at + size)); text.draw(); }
      const before = text.element.innerHTML;
      text.finish();
      return [before, text.element.innerHTML];
    })(%s, %d)"""
    with no_complaint(site.page):
        shown = [await site.page.evaluate(show % (json.dumps(HOSTILE), size)) for size in (1, 7, 10_000)]
    assert shown[0] == shown[1] == shown[2]
    drawn, finished = shown[0]
    assert drawn == finished
    for part in (
        "<h3>&lt;img src=x",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "<strong>bold</strong> &lt;b&gt;b&lt;/b&gt;",
        "two &amp; more",
    ):
        assert part in finished
    assert '<a href="https://example.org/" target="_blank" rel="noopener noreferrer">link</a>' in finished
    assert '<a href="https://example.org/a.png"' in finished
    assert "<span>bad</span>" in finished
    assert "<script" not in finished
    assert "<img" not in finished


async def test_blocks_that_are_complete_stay_while_a_text_grows(site: Site) -> None:
    """A long response is not read again from its beginning at each piece."""
    await site.begin()
    grow = """(async () => {
      const { MarkdownText } = await import("/assets/playground/markdown.js");
      const text = new MarkdownText();
      text.append("first\\n\\nsecond\\n\\n"); text.draw();
      text.append("third"); text.draw();
      const [first, second] = text.element.children;
      let read = 0;
      for (let place = 0; place < 200; place++) {
        text.append(`\\n\\n- item ${place}\\n\\nparagraph`); text.draw();
        read = Math.max(read, text.source.length - text._complete);
      }
      return [first === text.element.children[0], second === text.element.children[1], read < 100];
    })()"""
    with no_complaint(site.page):
        assert await site.page.evaluate(grow) == [True, True, True]


@pytest.mark.parametrize("source", ["> " * 5000, "- " * 5000, "[" * 5000, "**" * 5000, "<" * 5000])
async def test_deep_and_broken_markdown_is_shown(site: Site, source: str) -> None:
    await site.begin()
    show = """(async (source) => {
      const { MarkdownText } = await import("/assets/playground/markdown.js");
      const text = new MarkdownText();
      text.append(source); text.draw(); text.finish();
      return text.element.textContent.length > 0;
    })(%s)"""
    with no_complaint(site.page):
        assert await site.page.evaluate(show % json.dumps(f"{source}deep"))


async def test_a_wrong_key_is_explained(site: Site) -> None:
    await site.open()
    with no_complaint(site.page, refused=True):
        assert "umg keys create NAME" in (await site.texts("#notice"))[0]
        await site.use_key("sk-umg-wrong")
        await site.until_text("#notice .failure", "The key is not known.")
        assert await site.page.evaluate("document.getElementById('key-used').hidden")
        assert await site.page.evaluate("document.querySelector('.failure').getAttribute('role')") == "alert"


async def test_a_failed_call_is_explained_and_repeated(site: Site) -> None:
    await site.begin()
    with no_complaint(site.page, refused=True):
        await site.send(CHAT, "[[fail:429]]")
        await site.until_text(".failure", "The provider has reached its limit of calls. Wait, then retry")
        assert await site.texts("article.user .plain") == ["[[fail:429]]"]  # the prompt stays
        await site.press_button("Retry")
        await site.page.until(f"document.querySelectorAll('.step').length === 1 && {COMPLETE}")
        await site.until_text(".failure .request-id", "request ")


async def test_a_broken_stream_keeps_its_part(site: Site) -> None:
    await site.begin()
    with no_complaint(site.page, refused=True):
        await site.send(CHAT, "a story [[fail:mid]]")
        await site.until_text(".failure", "broke off")
        await site.until_text("article.model", "This part arrived before the failure.")


async def test_an_unknown_model_is_explained(site: Site) -> None:
    await site.begin()
    with no_complaint(site.page, refused=True):
        await site.send("gpt-nonexistent", "hello")
        await site.until_text(".failure", "There is no such model for this key.")


async def test_the_key_stays_in_the_page_unless_it_is_to_be_kept(site: Site) -> None:
    await site.begin()
    stored = "[sessionStorage.length, localStorage.length, document.cookie.length, location.search]"
    assert await site.page.evaluate(stored) == [0, 0, 0, "?kind=chat"]
    await site.click("#remember")
    assert await site.page.evaluate(stored) == [1, 0, 0, "?kind=chat"]
    await site.click("#remember")
    assert await site.page.evaluate(stored) == [0, 0, 0, "?kind=chat"]


async def test_models_without_a_price_are_named(site: Site) -> None:
    await site.begin()
    state = (await site.texts("#key-state"))[0]
    assert state.endswith(" models, 1 without a price: keys with a budget are refused")
    await site.page.evaluate("document.querySelector('#models input').click()")
    options = await site.texts("#models [role=option]")
    assert [option.split()[0] for option in options if "no price" in option] == [WAITING]


async def test_administrators_see_the_model_lists_that_could_not_be_read(site: Site, tmp_path: Path) -> None:
    broken = "channels:\n  - {name: broken, protocols: [chat], base_url: 'http://127.0.0.1:9/v1', models: discover}\n"
    async with running(f"discovery: {{wait: 60}}\n{broken}{SANDBOX}", tmp_path) as gateway:
        _, user = await ApiKeys(gateway.service.store).create("user")
        broken_site = Site(site.page, gateway, site.provider)
        with no_complaint(site.page):
            await broken_site.begin()
            await site.page.until("document.querySelectorAll('#list-problems li').length === 1")
            (shown,) = await site.texts("#list-problems li")
        assert shown.startswith("The model list of broken could not be read (")
        assert "no connection to 127.0.0.1:9: check that it runs, the port and the firewall" in shown

        await broken_site.open()
        with no_complaint(site.page):  # a call that is refused would be one
            await broken_site.use_key(user)
            await site.page.until("document.getElementById('list-problems').ariaBusy === 'false'")
            calls = "performance.getEntriesByType('resource').map(call => new URL(call.name).pathname)"
            assert "/umg.v1.AdminService/ListChannels" not in await site.page.evaluate(calls)
            assert await site.texts("#list-problems li") == []
            assert await site.page.evaluate(text_of("#key-name")) == "Key user"


async def test_models_are_picked_by_the_keyboard(site: Site) -> None:
    await site.begin()
    with no_complaint(site.page):
        await site.page.press("k", control=True)
        assert await site.page.evaluate("document.activeElement.getAttribute('role')") == "combobox"
        await site.page.write("sonnet")
        await site.page.press("ArrowDown")
        await site.page.press("Enter")
        assert await site.page.evaluate("document.activeElement.value") == "famC-sonnet-4-5"
        await site.page.press("l", control=True, shift=True)
        assert await site.page.evaluate("document.activeElement.tagName") == "PRE"
        await site.page.press("?")
        await site.until_text("dialog[open]", "edit the last message")
        await site.page.press("Escape")
        await site.page.until("!document.querySelector('dialog')")


async def test_all_is_reached_by_the_keyboard(site: Site) -> None:
    await site.begin()
    reached = dict[int, str]()
    await site.page.evaluate("document.querySelector('.skip').focus()")
    position = "[...document.body.querySelectorAll('*')].indexOf(document.activeElement)"
    while (place := await site.page.evaluate(position)) >= 0 and place not in reached:
        around = "document.activeElement.closest('.button') ?? document.activeElement"
        reached[place] = await site.page.evaluate("document.activeElement.id || document.activeElement.textContent")
        outline = await site.page.evaluate(f"getComputedStyle({around}).outlineStyle")
        assert outline == "solid", await site.page.evaluate("document.activeElement.outerHTML")
        await site.page.press("Tab")
    wanted = ["Chat", "Video", "API reference", "key-change", "new", "compare", "prompt", "send"]
    assert [each for each in reached.values() if each in wanted] == wanted
    names = "[...document.querySelectorAll('input, select, textarea')].filter(e => !e.labels.length && !e.ariaLabel).map(e => e.id)"
    assert await site.page.evaluate(names) == []


@pytest.mark.parametrize("kind", KINDS)
async def test_a_kind_has_no_barriers_and_fits_every_screen(site: Site, kind: str) -> None:
    await site.begin(kind)
    for scheme in ("light", "dark"):
        await site.page.scheme(scheme)
        assert await site.barriers(colours_only=scheme == "dark") == [], scheme
    await site.page.screen(*PHONE, mobile=True)
    assert await site.barriers() == []
    assert [fault async for fault in contrast_faults(site.page)] == []
    assert [fault async for fault in layout_faults(site.page)] == []


@pytest.mark.parametrize(("scheme", "name"), [("light", "playground-chat"), ("dark", "playground-chat-dark")])
async def test_a_conversation_has_no_barriers(site: Site, scheme: str, name: str) -> None:
    await site.begin(scheme=scheme)
    with no_complaint(site.page, refused=True):
        await site.send("famR-1", "a red kite over a lake, which season?")
        await site.page.until(f"document.querySelector('.figures') && {COMPLETE}")
        await site.page.until("document.querySelector('.cost').textContent.endsWith('credits')")
        assert await site.barriers() == []
        await site.page.picture(SCREENSHOTS / f"{name}.png")
        await site.send(CHAT, "[[fail]]")
        await site.page.until("document.querySelector('.failure')")
        assert await site.barriers() == []
        assert [fault async for fault in layout_faults(site.page)] == []


async def test_a_phone_shows_a_conversation_without_scrolling_to_the_side(site: Site) -> None:
    await site.begin(size=PHONE)
    with no_complaint(site.page):
        await site.send(CHAT, "a red kite over a lake")
        await site.page.until(f"document.querySelector('.figures') && {COMPLETE}")
        assert await site.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        await site.page.picture(SCREENSHOTS / "playground-phone.png")
