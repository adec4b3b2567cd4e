"""Table of the everyday tasks of operators: the way to each, its clicks from the overview, and the texts that must be seen.

Steps are methods of `Person` with their arguments; names in braces are those of `Site.prepared`.
"""

import asyncio
import csv
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.world.console.console_site import MICRO, PROVIDER_REQUEST, Site
from umg_grpc.access.api_keys import ApiKeys

SECRET = re.compile(r"sk-umg-[\w-]{20,}")
UNPAID_REMEDY = "the account has no credit or quota left: check its bill at the provider"
FROM_FIGURES = {1, 3}
"""Tasks that begin at the figures of the overview."""
Effect = Callable[[Site, dict[str, str], str], Awaitable[None]]
"""Check of the changes of a task, by the names of the person's objects and the text of the last page."""


@dataclass(frozen=True)
class Task:
    number: int
    """Number in the list of everyday tasks."""
    id: str
    steps: tuple[tuple[str, ...], ...]
    clicks: int
    seen: tuple[str, ...]
    """Patterns of texts on the page where the way ends."""
    effect: Effect | None = None

    @property
    def begins_at_overview(self) -> bool:
        """Whether the way begins at the figures of the overview, or with the search; not at the navigation of any page."""
        return not self.steps or self.steps[0][0] == "find" or self.number in FROM_FIGURES


async def key_works(site: Site, names: dict[str, str], shown: str) -> None:
    secret = SECRET.search(shown)
    assert secret
    assert f'curl {site.gateway.url}/v1/models -H "authorization: Bearer {secret[0]}"' in shown
    assert await site.status(secret[0]) == 200
    await site.person.back()
    assert secret[0] not in await site.person.text()
    key = await ApiKeys(site.gateway.service.store).get(names["indexer"])
    assert (key.budget_micro_credits, key.budget_period) == (25 * MICRO, "month")


async def both_secrets_work(site: Site, names: dict[str, str], shown: str) -> None:
    secret = SECRET.search(shown)
    assert secret
    assert (await site.status(secret[0]), await site.status(names["secret"])) == (200, 200)


async def key_is_refused(site: Site, names: dict[str, str], _: str) -> None:
    async with asyncio.timeout(60):  # nodes know it within seconds, which no event reports
        while await site.status(names["secret"]) == 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def csv_has_the_sums_of_the_page(site: Site, _: dict[str, str], shown: str) -> None:
    async with asyncio.timeout(60):
        while not (found := list(site.downloads.glob("usage-by-model-20*Z-20*Z.csv"))):  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # the file gets its name when it is whole
    rows = list(csv.DictReader(found[0].read_text().splitlines()))
    found[0].unlink()
    calls = re.search(r"Calls\s+([\d,]+)", shown)
    assert calls
    assert sum(int(row["calls"]) for row in rows) == int(calls[1].replace(",", ""))


TASKS = (
    Task(
        1, "is all well", (), 0,
        (r"as of \d\d:\d\d:\d\d UTC", r"4 channels (closed|not closed)|\d of 4 channels", r"Calls\s+[\d,]+\s+\+\d+ %", r"Calls a minute\s+0\.\d+\s+\+\d+ %",
         r"Failed\s+\d+ %\s+[+-]\d+ %", r"First byte, p95\s+[\d,]+ ms\s+[+-]\d+ %", r"Spend, credits\s+[\d.]+\s+\+\d+ %",
         r"Input from providers' caches\s+25 %\s+\+0 points"),
    ),
    Task(
        2, "why did this call fail", (("find", "{request}"),), 0,
        ("unpaid", "Your credit balance is too low", PROVIDER_REQUEST, "azure-eu", "gpt-5-eu", "bootstrap", "402", "not sent to the provider", UNPAID_REMEDY),
    ),
    Task(
        3, "what fails just now", (("go", "Failed: …"),), 1,
        ("Failed calls by reason", "upstream_unpaid", "Failed calls by channel", "azure-eu", "span before", "{request}",
         "umg requests list --since 24h --failed"),
    ),
    Task(
        4, "which provider is broken", (("go", "Channels"),), 1,
        (r"last words\s+act\s+azure-eu\s+(half_)?open", "1 unpaid", UNPAID_REMEDY, "Your credit balance is too low", "…-end"),
    ),
    Task(5, "check a channel", (("go", "Channels"), ("go", "Check gemini")), 2, ("works", r"\d+ ms")),
    Task(
        5, "take a channel out",
        (("go", "Channels"), ("go", "Disable gemini"), ("see", r"1 models are left without a channel; they had \d+ calls"),
         ("fill", "reason, for the audit log and the next reader", "a test"), ("go", "Disable gemini")),
        3, ("disabled", "The channel is disabled", r"changed by bootstrap .*: a test"),
    ),
    Task(5, "put a channel back", (("go", "Channels"), ("go", "Enable gemini")), 2, ("closed", "The channel is enabled")),
    Task(
        6, "give a program a key",
        (("go", "Keys"), ("go", "Create key"), ("fill", "name", "{indexer}"), ("fill", "budget, credits", "25"), ("go", "Create key")),
        3, ("{indexer}", SECRET.pattern), key_works,
    ),
    Task(
        7, "rotate a leaked key",
        (("find", "{start}"), ("see", "{leaked}"), ("see", "never used, 0 calls in the last hour"), ("press", "Rotate"), ("go", "Rotate")),
        2, (SECRET.pattern, r"The former secret {start}… ends in (24 h|23 h|1 d)"), both_secrets_work,
    ),
    Task(
        7, "revoke a leaked key",
        (("find", "{leaked}"), ("press", "Revoke"), ("fill", "Type {leaked} to confirm", "{leaked}"), ("go", "Revoke")),
        2, ("The key is revoked.", "revoked"), key_is_refused,
    ),
    Task(
        8, "raise a budget",
        (("find", "{raised}"), ("see", r"0 spent · 0 reserved · 5.00 left of 5.00 this month"), ("press", "Edit"),
         ("fill", "budget, credits", "50"), ("go", "Save")),
        2, (r"50.00 left of 50.00 this month", "search binds first: it allows 20.00 more"),
    ),
    Task(
        9, "who spent what", (("go", "Usage"),), 1,
        (r"Spend, credits\s+[\d.]+\s+\+\d+ %", r"gpt-5\s+\d+\s.*\+\d+ %", r"by\s+model", r"and by\s+model\s+key", r"app\s+\d+\s.*\+\d+ %"),
    ),
    Task(10, "figures for accounting", (("go", "Usage"), ("press", "CSV")), 2, (), csv_has_the_sums_of_the_page),
    Task(
        11, "price a model without one",
        (("go", "Models"), ("see", r"2 models have no price"), ("see", r"operations\s+lab-1\s+Set price\s+no price"), ("press", "Set price"),
         ("fill", "input, a million tokens", "1.25"), ("fill", "output, a million tokens", "10"), ("go", "Save")),
        3, ("Every process charges calls by the price within seconds.", "1.25"),
    ),
    Task(
        12, "which project ends its budget soon", (("go", "Projects"),), 1,
        (r"20.00 spent · 0 reserved · 0.000001 left of 20.00 this month, [\d.]+ a day", r"ends on \d\d \w+, \d\d:\d\d UTC at this rate"),
    ),
    Task(
        13, "give a person a role",
        (("go", "People"), ("go", "Add"), ("see", "Sees usage, budgets and prices there, and changes nothing."),
         ("fill", "e-mail", "{person}"), ("go", "Add")),
        3, ("{person}", "billing of the whole gateway"),
    ),
    Task(
        14, "deliver a notification again",
        (("go", "Video tasks"), ("go", "not delivered"), ("see", r"given up"), ("see", "after attempt 1: the receiver answered with status 410"), ("see", r"\d+ s ago"),
         ("go", "Deliver again")),
        3, ("The receiver has accepted the notification.", "delivered"),
    ),
    Task(
        15, "who changed this key", (("find", "{raised}"), ("go", "History")), 1,
        ("UpdateKey", "bootstrap", r"127\.0\.0\.1", "5000000 50000000"),
    ),
    Task(15, "who changed anything", (("go", "Audit log"),), 1, ("CreateUser", "{person}", "UpdateKey")),
)  # fmt: skip
