"""The first key of a gateway whose database goes away right after the start."""

from pathlib import Path

import aiohttp

from tests.support.databases import Postgres
from umg_grpc.cli.serve import Options, gateway
from umg_grpc.config import Address
from umg_grpc.config.file_schema import parse

CONFIG = """database: {url}
overload: {{lag: 10}}
channels:
  - name: sandbox
    protocols: [sandbox]
    models: [famO-5]
"""


async def test_the_bootstrap_key_works_while_the_database_is_away_from_the_start(
    postgres: Postgres, tmp_path: Path
) -> None:
    file = tmp_path / "umg.yaml"
    file.write_text(CONFIG.format(url=postgres.create("first_key")))
    config = parse(file.read_text(), str(file), {})
    options = Options(file, Address("127.0.0.1", 0), Address("127.0.0.1", 0), tmp_path)
    async with gateway(options, config, {}, None) as state, aiohttp.ClientSession() as session:
        postgres.stop()
        try:
            assert state.bootstrap is not None
            headers = {"authorization": f"Bearer {state.bootstrap.secret}"}
            async with session.get(f"http://{state.http}/v1/models", headers=headers) as answer:
                assert (answer.status, "famO-5" in await answer.text()) == (200, True)
        finally:
            postgres.start()
