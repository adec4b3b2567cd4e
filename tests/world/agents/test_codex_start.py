"""Requests of Codex at its start: the gateway serves all that a plain server of responses serves, without retries."""

from pathlib import Path

from tests.world.agents.codex_start import start
from tests.world.agents.install import installed
from tests.world.sdk.runner import installed_or_skipped


async def test_codex_starts_with_the_same_requests_as_at_a_plain_server(tmp_path: Path) -> None:
    programs = installed_or_skipped(installed)
    plain = await start(programs, tmp_path / "plain", gateway=False)
    ours = await start(programs, tmp_path / "gateway", gateway=True)
    assert (plain.problems, ours.problems) == ([], [])
    assert [each[:2] for each in ours.requests] == [each[:2] for each in plain.requests]
    assert all(status == 200 for _, _, status in ours.requests)


async def test_codex_goes_on_over_http_after_one_refused_websocket(tmp_path: Path) -> None:
    found = await start(installed_or_skipped(installed), tmp_path, gateway=True, websockets=True)
    assert not found.problems
    assert found.requests == [("GET", "/v1/responses", 426), ("POST", "/v1/responses", 200)]
