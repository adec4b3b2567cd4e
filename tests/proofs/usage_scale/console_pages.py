"""Pages of the console over a filled database: their times, their calls and queries, and the plans of these."""

import asyncio
import json
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg
from sqlalchemy import Engine, event

from http_facade.console.session_calls import SessionCalls
from tests.proofs.usage_scale.filling import LARGEST_KEY, RARE_MODEL, SMALL_KEY
from tests.support.console_browser import Browser, Reply
from tests.support.console_world import CONSOLE_CONFIG
from tests.support.databases import Postgres
from tests.support.gateways import running
from umg_grpc.store.database_constants import SQLITE_FILE

MAX_PAGE_SECONDS, MAX_LIST_SECONDS = 1.0, 0.2
MAX_CALLS = 6
"""Calls of a page besides that of the person's rights."""
RECORDS = "call_records"
CONNECTED = "[local]"
"""Part of the title of the processes of PostgreSQL that serve a connection."""
PROJECT = "proj_0000000000000007"
FILTERS: Mapping[str, Mapping[str, str]] = {
    "all": {},
    "largest key": {"key": LARGEST_KEY},
    "small key": {"key": SMALL_KEY},
    "model": {"model": "vendor/model-3"},
    "rare model": {"model": RARE_MODEL},
    "channel": {"channel": "channel-2-b"},
    "agent": {"agent": "codex"},
    "project": {"project": PROJECT},
    "failed": {"failed": "1"},
    "failed of a small key": {"failed": "1", "key": SMALL_KEY},
    "rare reason": {"reason": "upstream_timeout"},
    "end user": {"user": "person-100"},
    "small key and model": {"key": SMALL_KEY, "model": "vendor/model-7"},
}
DIMENSIONS = ("model", "key", "channel", "project", "agent", "operation")
PARTS_OF_USAGE = {
    "largest key": f"keys/{LARGEST_KEY}",
    "small key": f"keys/{SMALL_KEY}",
    "project": f"projects/{PROJECT}",
    "organisation": "projects/org_0000000000000003",
}
SPANS = {name: timedelta(hours=hours) for name, hours in (("1 h", 1), ("24 h", 24), ("7 d", 168), ("90 d", 90 * 24))}
DEPTHS = {"newest": timedelta(), "40 days ago": timedelta(days=40, hours=3), "last": timedelta(days=89)}


@dataclass
class PageVisit:
    """Page, its limit, and the cost of its drawing."""

    name: str
    path: str
    limit: float
    status: int = 0
    bytes: int = 0
    seconds: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)
    calls: int = 0
    """Calls of the services."""
    queries: int = 0
    turn: float = 0.0
    """Longest turn of the event loop, in seconds of processor time."""
    scans: list[str] = field(default_factory=list)
    """Steps of the plans that read all records of a day or more. The planner chooses them for a summary that needs a
    good part of a day's records; a list needs few.
    """

    def __str__(self) -> str:
        least, whole = (1000 * min(each, default=0.0) for each in (self.processor_seconds, self.seconds))
        times = f"{least:5.0f} ms of the processor, {whole:5.0f} in all"
        work = f"{self.calls:2} calls, {self.queries:2} queries, turn {1000 * self.turn:4.1f} ms, {self.bytes:7,} bytes"
        return f"{self.name:<48}{self.status:>4} {times}; {work}{''.join(f' SCAN {each}' for each in self.scans)}"

    @property
    def is_slow(self) -> bool:
        """Whether it is not as quick, or as small, as it has to be."""
        is_late = min(self.processor_seconds) > self.limit
        is_scan = self.limit == MAX_LIST_SECONDS and bool(self.scans)
        return is_late or self.status != 200 or self.calls > MAX_CALLS + 1 or is_scan


def visits(
    end: datetime, spans: Mapping[str, timedelta] = SPANS, depths: Mapping[str, timedelta] = DEPTHS, requests: int = 0
) -> Iterator[PageVisit]:
    """Yield the pages with data of the console, and their filters, spans and depths. `end`: of the records; `requests`:
    number of a record.
    """

    def query(since: timedelta, age: timedelta = timedelta(), **filters: str) -> str:
        times = {"since": f"{end - since:%Y-%m-%dT%H:%M:%SZ}", "until": f"{end - age:%Y-%m-%dT%H:%M:%SZ}"}
        return urlencode(times | filters)

    for name, filters in FILTERS.items():
        for depth, age in depths.items():
            path = f"requests?{query(timedelta(days=90), age, **filters)}"
            yield PageVisit(f"requests, {name}, {depth}", path, MAX_LIST_SECONDS)
    for name, span in spans.items():
        for part in ("all", "largest key", "small key", "model", "channel", "project"):
            yield PageVisit(f"overview, {part}, {name}", f"?{query(span, **FILTERS[part])}", MAX_PAGE_SECONDS)
        for dimension in DIMENSIONS:
            yield PageVisit(f"usage by {dimension}, {name}", f"usage?{query(span, by=dimension)}", MAX_PAGE_SECONDS)
        for part, path in PARTS_OF_USAGE.items():
            yield PageVisit(f"{part}, {name}", f"{path}?{query(span)}", MAX_PAGE_SECONDS)
    yield PageVisit("request", f"requests/req_{requests:032d}", MAX_PAGE_SECONDS)
    for path in (
        *("alerts", "keys", "keys?text=key+99", "keys?ended=1", f"keys?project={PROJECT}", "keys/new", "projects"),
        *("projects?closed=1", "projects/new", "people", "people/new", "people/user_0000000000000012", "channels"),
        *("tasks", "audit", f"audit?object={SMALL_KEY}", "config", "search?text=project+1", "search?text=key+1"),
    ):
        yield PageVisit(path, path, MAX_LIST_SECONDS)


class PageMeasure:
    """Measurement of pages, in the process of their gateway."""

    def __init__(self, browser: Browser, engine: Engine, directory: Path, server: int | None) -> None:
        """Measure as the person of a browser. `server`: id of the first process of PostgreSQL; None for SQLite, whose
        file is in the directory.
        """
        self._browser, self._engine, self._directory, self._server = browser, engine, directory, server

    async def visit(self, page: PageVisit, times: int) -> None:
        """Draw a page once with notes of its work, then several times to note the cost of the quickest time."""
        with self._noted() as (statements, calls), _turns() as turns:
            reply = await self._drawn(page)
        page.status, page.bytes = reply.status, len(reply.text.encode())
        page.calls, page.queries, page.turn = calls.total(), len(statements), turns[0]
        for _ in range(times):  # the notes of turns keep the processor busy
            used, began = self._processor_times(), time.perf_counter()
            await self._drawn(page)
            page.seconds.append(time.perf_counter() - began)
            now = self._processor_times()
            page.processor_seconds.append(sum(spent - used.get(process, 0) for process, spent in now.items()))
        page.scans = await asyncio.to_thread(self._scans, statements)

    async def _drawn(self, page: PageVisit) -> Reply:
        return await self._browser.get(f"/console/{page.path}".replace("/?", "?"))

    @contextmanager
    def _noted(self) -> Iterator[tuple[list[tuple[str, Any]], "Counter[str]"]]:
        """Note the statements and the calls of the services."""
        statements, calls = list[tuple[str, Any]](), Counter[str]()

        def note(_1: object, _2: object, statement: str, parameters: Any, *_3: object) -> None:
            statements.append((statement, parameters))

        call = SessionCalls.call

        async def counted(self: SessionCalls, request: Any, kind: Any) -> Any:
            calls[request.DESCRIPTOR.name] += 1
            return await call(self, request, kind)

        event.listen(self._engine, "before_cursor_execute", note)
        SessionCalls.call = counted  # type: ignore[method-assign]
        try:
            yield statements, calls
        finally:
            SessionCalls.call = call  # type: ignore[method-assign]
            event.remove(self._engine, "before_cursor_execute", note)

    def _processor_times(self) -> dict[int, float]:
        """Return the processor times of this process, 0, and of PostgreSQL's by their ids."""
        return {0: time.process_time()} | {each: _seconds_of(each) for each in _children(self._server)}

    def _connect(self) -> Any:
        if self._server is None:
            return closing(sqlite3.connect(self._directory / SQLITE_FILE))
        url = self._engine.url
        return psycopg.connect(dbname=url.database, user=url.username, **url.query)

    def _scans(self, statements: Sequence[tuple[str, Any]]) -> list[str]:
        """Return the steps of the plans that read records without an index."""
        found = set[str]()
        with self._connect() as connection:
            for statement, parameters in statements:
                if RECORDS not in statement or not statement.lstrip("(").startswith("SELECT"):
                    continue
                if self._server is None:
                    rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
                    found |= {row[-1] for row in rows if f"SCAN {RECORDS}" in row[-1] and "INDEX" not in row[-1]}
                else:
                    [plan] = connection.execute(f"EXPLAIN (FORMAT JSON) {statement}", parameters).fetchone()
                    found |= {*_sequential(plan if isinstance(plan, list) else json.loads(plan))}
        return sorted(found)


async def measure_pages(
    url: str, directory: Path, pages: Iterable[PageVisit], server: Postgres | None, times: int = 2
) -> AsyncGenerator[PageVisit]:
    """Draw pages by a gateway on a filled database, and yield each with its work, and its cost of several `times`."""
    config = f"{CONSOLE_CONFIG}database: {url!r}\nusage: {{ttl: 3650d}}\nlog: {{level: error}}\n"
    async with running(config, directory) as gateway, Browser(gateway.url) as browser:
        await browser.sign_in()
        process = None if server is None else int((server.directory / "data/postmaster.pid").read_text().split()[0])
        measure = PageMeasure(browser, gateway.service.store._engine.sync_engine, directory, process)
        for page in pages:
            await measure.visit(page, times)
            yield page


def _sequential(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from _sequential(each)
    elif isinstance(node, dict):
        if node.get("Node Type") == "Seq Scan" and str(node.get("Relation Name")).startswith(RECORDS):
            yield RECORDS
        for each in node.values():
            yield from _sequential(each)


@contextmanager
def _turns() -> Iterator[list[float]]:
    """Note the longest turn of the event loop, in seconds of its thread's processor time."""
    longest, is_over, began = [0.0], False, time.thread_time()
    loop = asyncio.get_running_loop()

    def note() -> None:
        nonlocal began
        if not is_over:
            now = time.thread_time()
            longest[0], began = max(longest[0], now - began), now
            loop.call_soon(note)

    loop.call_soon(note)
    try:
        yield longest
    finally:
        is_over = True


def _children(server: int | None) -> Iterator[int]:
    """Yield the processes of PostgreSQL that serve a connection."""
    if server is not None:
        for process in Path(f"/proc/{server}/task/{server}/children").read_text().split():
            with suppress(OSError):  # it has just ended
                if CONNECTED in Path(f"/proc/{process}/cmdline").read_text():
                    yield int(process)


def _seconds_of(process: int) -> float:
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9
    except OSError:  # it has just ended
        return 0.0
