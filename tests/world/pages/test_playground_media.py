"""Playground in a real browser: every simulated image and video model, edits with a mask, vectors, rankings, counts."""

from pathlib import Path

import pytest

from tests.support.images import picture
from tests.world.pages.site import IMAGE, MODELS, SCREENSHOTS, VIDEO, Site, no_complaint
from umg_grpc.knowledge.families.image_model_rules import IMAGE_MODELS
from umg_grpc.knowledge.families.video_model_rules import DOCUMENTED_MODELS, ENTRY_RULES

IMAGES = [model for model in MODELS if model in IMAGE_MODELS]
VIDEOS = [model for model in MODELS if model in DOCUMENTED_MODELS]
SMALLEST = """for (const label of document.querySelectorAll('#settings label')) {
  const field = document.getElementById(label.htmlFor);
  const least = {resolution: '', seconds: %d, 'frames per second': 1}[label.textContent];
  if (least === undefined) continue;
  if (field.options) field.selectedIndex = 1;
  else field.value = least;
  field.dispatchEvent(new Event('input'));
}"""
"""Script that chooses the smallest resolution, length and rate, so that a video is encoded quickly. It needs the least
number of seconds of a model without a list of them.
"""
LATE_LIST = """{
  const sent = fetch;
  globalThis.fetch = async (path, options) => {
    if (path.endsWith('/ListVideoTasks') && !globalThis.listed) await new Promise(done => { globalThis.listed = done; });
    return await sent(path, options);
  };
}"""
"""Script after which the first list of tasks waits until `listed` is called, and then has those made meanwhile."""
SHOWN = """new Promise(done => {
  const video = document.querySelector('#view video');
  video.onerror = () => done(-video.error.code);
  video.requestVideoFrameCallback(() => done(video.videoWidth));
  video.currentTime = 0.1;
})"""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("photos") / "photo.png"
    path.write_bytes(picture("PNG", (1024, 1024)))
    return path


async def test_the_simulated_models_are_all_documented_ones() -> None:
    assert set(IMAGES) == set(IMAGE_MODELS)
    assert set(VIDEOS) == DOCUMENTED_MODELS
    assert {model[:4] for model in VIDEOS} == {f"vid{family}" for family in "ABCDEFG"}


@pytest.mark.parametrize("model", IMAGES)
async def test_an_image_model_makes_a_picture(site: Site, photo: Path, model: str) -> None:
    """By a text, or by a picture where the model needs one."""
    kind = "edit" if IMAGE_MODELS[model].min_inputs else "image"
    await site.begin(kind)
    with no_complaint(site.page):
        await site.choose(model)
        if kind == "edit":
            await site.add_files("#view input[type=file]", photo)
            await site.page.until("document.querySelector('.files img')")
        await site.fill("#prompt", "a red balloon")
        await site.click("#send")
        await site.page.until("document.querySelector('#result figure img, .failure')")
        assert await site.texts(".failure") == []
        assert await site.page.evaluate("document.querySelector('#result figure img').decode().then(() => true)")


async def test_every_video_model_makes_a_video(site: Site, photo: Path) -> None:
    """The tasks of all models run at the same time; that of each is shown when it is complete."""
    await site.begin("video")
    with no_complaint(site.page, refused=True):  # records that are not written yet
        for model in VIDEOS:
            await site.choose(model)
            rules = [rows[model] for rows in ENTRY_RULES.values() if model in rows]
            await site.page.evaluate(SMALLEST % max(each.ranges.get("duration_seconds", (1, 1))[0] for each in rules))
            needs_image = any(each.needs_image for each in rules)
            if needs_image:
                await site.add_files("#view input[type=file]", photo)
                await site.page.until("document.querySelector('.files img')")
            await site.page.evaluate("document.querySelector('#prompt').select()")
            await site.fill("#prompt", f"a balloon by {model}")
            before = len(await site.texts(".tasks > li"))
            await site.click("#send")
            await site.page.until(
                f"document.querySelectorAll('.tasks > li').length > {before} || document.querySelector('.failure')"
            )
            assert await site.texts(".failure") == [], model
            await site.page.until("!document.getElementById('send').disabled")
            if needs_image:
                await site.press_button("×")
        for number in range(len(VIDEOS)):  # each wait has a limit, which all of them would exceed on a busy machine
            shown = f"document.querySelectorAll('.tasks video').length > {number}"
            await site.page.until(f"{shown} || document.querySelector('.tasks .bad')")
            assert await site.texts(".tasks .bad") == []
    models = sorted(text.split(" by ")[1] for text in await site.texts(".tasks > li > p:first-child strong"))
    assert models == sorted(VIDEOS)


async def test_a_task_that_is_made_while_the_list_is_read_shows_its_video(site: Site) -> None:
    await site.open("/playground?kind=video")
    await site.page.evaluate(LATE_LIST)
    with no_complaint(site.page, refused=True):  # records that are not written yet
        await site.use_key()
        await site.page.until("globalThis.listed")
        await site.choose(VIDEO)
        await site.fill("#prompt", "a boat before the list")
        await site.click("#send")
        await site.until_text(".tasks > li", "a boat before the list")
        await site.page.evaluate("listed()")
        await site.page.until("document.querySelector('.tasks > li:first-child video')")
        texts = await site.texts(".tasks > li strong")
        assert texts.count("a boat before the list") == 1


async def test_a_video_survives_a_reload_and_is_remixed(site: Site) -> None:
    await site.begin("video")
    with no_complaint(site.page, refused=True):  # records that are not written yet
        await site.choose(VIDEO)
        await site.fill("#prompt", "a boat at dawn")
        await site.click("#send")
        await site.page.until(
            "[...document.querySelectorAll('.tasks strong')].some(e => e.textContent === 'a boat at dawn')"
        )
        task = await site.page.evaluate("document.querySelector('.tasks > li').dataset.task")
    await site.begin("video")
    with no_complaint(site.page, refused=True):  # records that are not written yet
        row = f"[data-task={task}]"
        await site.page.until(f"document.querySelector('{row} progress') || document.querySelector('{row} button')")
        await site.press_button("Show video", row)
        await site.page.until(f"document.querySelector('{row} video')")
        assert await site.page.evaluate(SHOWN.replace("#view video", f"{row} video")) > 0
        await site.page.picture(SCREENSHOTS / "playground-video.png")
        await site.press_button("Remix", row)
        await site.fill(f"{row} form input", "at night")
        await site.press_button("Make remix", row)
        await site.page.until(
            f"document.querySelector('.tasks > li:first-child').textContent.includes('remix of {task}')"
        )
        await site.page.until("document.querySelector('.tasks > li:first-child video')")


async def test_a_task_is_cancelled_while_it_waits(site: Site) -> None:
    await site.begin("video")
    with no_complaint(site.page, refused=True):
        await site.choose("vidG-H3")
        await site.fill("#prompt", "a task to be cancelled [[slow]]")
        await site.click("#send")
        await site.press_button("Cancel task", ".tasks > li:first-child")
        await site.page.until(
            "/cancelled|Its state does not permit/.test(document.querySelector('.tasks > li').textContent)"
        )


async def test_a_failed_task_states_its_reason(site: Site) -> None:
    await site.begin("video")
    with no_complaint(site.page, refused=True):  # records that are not written yet
        await site.choose(VIDEO)
        await site.fill("#prompt", "[[fail]]")
        await site.click("#send")
        await site.until_text(".tasks > li:first-child .bad p, .tasks > li:first-child p.bad", "Failed: ")


async def test_a_picture_is_edited_with_a_mask_by_the_keyboard(site: Site) -> None:
    await site.begin("image")
    with no_complaint(site.page):
        await site.choose(IMAGE)
        await site.fill("#prompt", "a house")
        await site.click("#send")
        await site.press_button("Edit it")
        await site.page.until("document.querySelector('#kinds [aria-current]').textContent === 'Edit image'")
        await site.page.evaluate("document.querySelector('#view details').open = true")
        await site.page.until("document.querySelector('#view canvas').width === 1024")
        await site.page.evaluate("document.querySelector('#view canvas').focus()")
        for key in (" ", "ArrowRight", "ArrowDown", " "):
            await site.page.press(key)
        await site.fill("#prompt", "a red roof")
        assert await site.barriers() == []
        await site.until_text("#code code", '"operation"')
        await site.click("#send")
        await site.page.until("document.querySelector('#result figure img')")
        assert await site.texts("#result h2") == ["Before", "After"]
        await site.page.picture(SCREENSHOTS / "playground-edit.png")


async def test_vectors_are_compared_with_a_chosen_row(site: Site) -> None:
    await site.begin("embed")
    with no_complaint(site.page):
        await site.choose("text-embedding-3-small")
        await site.fill("#prompt", "a red kite\na red kite over a lake\nthe annual report")
        await site.click("#send")
        await site.page.until("document.querySelectorAll('#result tbody tr').length === 3")
        cosines = [float(cell) for cell in await site.texts("#result td:last-child")]
        assert cosines[0] == 1
        assert cosines[1] > cosines[2]
        await site.page.evaluate("document.querySelectorAll('#result input')[2].click()")
        await site.page.until("document.querySelector('#result tr:last-child td:last-child').textContent === '1.0000'")
        assert await site.barriers() == []


async def test_documents_are_ranked(site: Site) -> None:
    await site.begin("rerank")
    with no_complaint(site.page):
        await site.choose("rerank-v1")
        await site.fill("#query", "red kite")
        await site.fill("#prompt", "the annual report\na red kite over a lake")
        await site.click("#send")
        await site.page.until("document.querySelectorAll('#result tbody tr').length === 2")
        assert (await site.texts("#result td:nth-child(2)"))[0] == "a red kite over a lake"
        assert await site.texts("#result td:last-child") == ["2", "1"]
        assert await site.barriers() == []


async def test_tokens_are_counted_with_their_share_of_the_context(site: Site) -> None:
    await site.begin("count")
    with no_complaint(site.page):
        await site.choose("famG-2.5-flash")
        await site.fill("#prompt", "a red kite over a lake")
        await site.click("#send")
        await site.until_text("#result", " tokens that the model reads")
        assert (await site.texts("#result .figure"))[0].split()[1] == "tokens"
