"""The page about prompt caches has the headers of sessions that the gateway reads and passes on."""

from pathlib import Path

from tests.docs.tables import quoted, rows
from umg_grpc.knowledge.agent_sessions import SESSION_HEADER_ROWS
from umg_grpc.knowledge.vendor_client_headers import CLIENT_HEADERS
from umg_grpc.service.caching.prompt_cache_account_choice import SMALLEST_BYTES

PAGE = (Path(__file__).parents[2] / "docs" / "prompt-caches.md").read_text(encoding="utf-8")


def test_the_headers_that_name_a_session_are_those_of_the_page() -> None:
    found = [(*quoted(cells[0]), *cells[1:]) for cells in rows(PAGE, "Headers that name a session")]
    assert found == [(row.header, row.names, row.client) for row in SESSION_HEADER_ROWS]


def test_the_headers_that_pass_to_a_vendor_and_back_are_those_of_the_page() -> None:
    found = [(*quoted(cells[0]), *cells[1:]) for cells in rows(PAGE, "Headers for a vendor")]
    assert found == [(row.header, row.direction, f"{row.owner}, {row.face}", row.client) for row in CLIENT_HEADERS]
    assert [f"`{row.header}` is for callers" in PAGE for row in CLIENT_HEADERS if row.names_model] == [True]


def test_the_size_of_short_requests_is_that_of_the_page() -> None:
    assert f"less than {SMALLEST_BYTES // 1024} KiB that name no session" in " ".join(PAGE.split())
