"""Console over HTTP: notifications of a video task, their repeated delivery, and the history of the task."""

import re
from pathlib import Path

import pytest

from tests.support.console_browser import Browser
from tests.support.fake_video_upstream import SUCCEEDED
from tests.support.notified_callers import notified
from tests.support.video_calls import create, eventually
from umg_grpc.service.video_tasks import caller_notifier


def cells(page: str) -> list[str]:
    """Return the texts of the cells of a page's tables."""
    found = re.findall(r"<td>(.*?)</td>", page, re.DOTALL)
    return [re.sub(r"<[^>]*>", "", cell).strip() for cell in found]


@pytest.mark.parametrize("minutes", ["-5", "0", "1.5", "10001", "9" * 30, "²"])
async def test_a_filter_by_minutes_names_its_range(minutes: str, tmp_path: Path) -> None:
    async with notified(tmp_path) as (gateway, *_), Browser(gateway.url) as browser:
        await browser.sign_in()
        page = await browser.get(f"/console/tasks?stuck={minutes}")
        assert (page.status, page.problem) == (
            400,
            f"`stuck` must be a whole number of minutes from 1 to 10000, not `{minutes}`",
        )
        assert (await browser.get("/console/tasks?stuck=10000")).status == 200


async def test_a_task_names_the_state_that_a_notification_reports_and_leads_to_its_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_notifier, "RETRY_PAUSES", ())
    async with notified(tmp_path) as (gateway, fake, stub, receiver, url), Browser(gateway.url) as browser:
        fake.script, receiver.statuses = [SUCCEEDED], [500, 204]
        task_id = (await create(stub, callback_url=url)).task_id
        await eventually(gateway.service.tasks.context.callbacks.backlog, lambda backlog: backlog.given_up == 1)
        await browser.sign_in()
        path = f"/console/tasks/{task_id}"
        failed = await browser.get(path)
        reported, state, receiver_url, attempts, last, following, answer, _ = cells(failed.text)
        assert (reported, receiver_url, attempts, following) == ("succeeded", url, "1", "")
        assert (state.endswith("given up"), last.endswith("ago")) == (True, True)
        assert answer == "the receiver answered with status 500"
        listed = await browser.get("/console/tasks?undelivered=1")
        assert re.search(r'class="callback">succeeded <', listed.text)

        delivered = await browser.post(path, failed.form("redeliver") | {"act": "redeliver", "callback": ""})
        assert (delivered.status, "delivered" in delivered.text) == (200, True)
        [history] = re.findall(r'href="(/console/audit\?[^"]*object=[^"]*)"', delivered.text)
        log = await browser.get(history.replace("&amp;", "&"))
        assert "RedeliverCallback" in log.text
        assert f'href="{path}"' in log.text
        assert "umg audit list" not in log.text  # it has no flag for an object
        assert "umg audit list" in (await browser.get("/console/audit?since=7d")).text
