"""Rules for URLs of callers in a running gateway: those of the config, and those of its last reload."""

from pathlib import Path

import pytest

from tests.support.gateways import SANDBOX, running
from umg_grpc.base.errors import UmgError
from umg_grpc.config import parse

URL = "http://files.corp:8080/x.png"


async def test_a_reload_applies_the_rules_at_once(tmp_path: Path) -> None:
    async with running(SANDBOX, tmp_path) as made:
        with pytest.raises(UmgError, match="has the scheme http"):
            made.service.fetcher.check(URL, field="image")
        changes = made.service.reload(parse(f"egress: {{allow: ['*.corp:8080']}}\n{SANDBOX}", "test.yaml", {}))
        assert (changes.applied, changes.need_restart) == (("egress",), ())
        made.service.fetcher.check(URL, field="image")
        assert made.service.reload(parse(f"blobs: {{ttl: 1h}}\n{SANDBOX}", "test.yaml", {})).need_restart == (
            "blobs.ttl",
        )
        with pytest.raises(UmgError, match="has the scheme http"):
            made.service.fetcher.check(URL, field="image")
