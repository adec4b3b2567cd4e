"""Audit: it fails with a message if a package could not be looked up."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from scripts import audit

PINS = "left==1.0 --hash=sha256:" + "0" * 64 + "\nright==2.0 --hash=sha256:" + "1" * 64 + "\n"
FLAW = {"id": "OSV-1", "fix_versions": ["1.1"], "aliases": [], "description": "a flaw"}

FIXED = {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.1"}]}


@dataclass(frozen=True)
class Report:
    """Report of pip-audit on packages, and the resulting exit status and message."""

    id: str
    packages: list[dict[str, Any]]
    status: int
    words: str


REPORTS = [
    Report(
        "nothing known", [{"name": "left", "version": "1.0", "vulns": []}], 0, "No known vulnerabilities in 1 packages."
    ),
    Report("a flaw", [{"name": "left", "version": "1.0", "vulns": [FLAW]}], 1, "left 1.0: OSV-1, fixed in 1.1"),
    Report(
        "a package that was skipped",
        [{"name": "left", "version": "1.0", "vulns": []}, {"name": "right", "skip_reason": "not found"}],
        2,
        "audit failed: 1 of 2 packages are unknown to the source of vulnerabilities.",
    ),
    Report(
        "a flaw beside a package that was skipped",
        [{"name": "left", "version": "1.0", "vulns": [FLAW]}, {"name": "right", "skip_reason": "not found"}],
        2,
        "left 1.0: OSV-1, fixed in 1.1",
    ),
]


@pytest.mark.parametrize("case", REPORTS, ids=lambda case: case.id)
def test_a_report_has_its_exit_status(case: Report) -> None:
    status, words = audit.judge({"dependencies": case.packages})
    assert status == case.status
    assert case.words in words


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "two.lock"
    path.write_text(PINS)
    return path


async def test_a_source_that_does_not_answer_fails_the_audit(lock: Path) -> None:
    async with TestServer(web.Application()) as server:
        closed = str(server.make_url("/"))
    status, words = audit.audit(lock, ["--osv-url", closed, "--timeout", "5"])
    assert status == audit.UNKNOWN
    assert words.startswith("audit failed: nothing in two.lock was audited, the source gave no response (")
    assert "where that source is reachable" in words


async def test_a_flaw_of_a_pinned_version_is_reported(lock: Path) -> None:
    async def query(request: web.Request) -> web.Response:
        package = (await request.json())["package"]["name"]
        affected = [{"package": {"name": "left", "ecosystem": "PyPI"}, "ranges": [FIXED]}]
        flaws = [{"id": "OSV-1", "modified": "2026-01-01T00:00:00Z", "summary": "a flaw", "affected": affected}]
        return web.json_response({"vulns": flaws} if package == "left" else {})

    source = web.Application()
    source.router.add_post("/v1/query", query)
    async with TestServer(source) as server:
        options = ["--osv-url", str(server.make_url("/v1/query"))]
        status, words = await asyncio.to_thread(audit.audit, lock, options)
    assert (status, words.splitlines()[0]) == (audit.FOUND, "left 1.0: OSV-1, fixed in 1.1")
