"""Long sessions of Codex, for CI: `make agents` runs them with a provider of every format."""

from pathlib import Path

import pytest

from tests.world.agents.install import installed
from tests.world.agents.long_sessions import FEW, Session, problems_of
from tests.world.sdk.runner import installed_or_skipped


@pytest.mark.parametrize("session", FEW, ids=lambda session: session.id)
async def test_codex_compacts_a_long_session_and_ends_its_work(session: Session, tmp_path: Path) -> None:
    assert await problems_of(session, installed_or_skipped(installed), tmp_path) == []
