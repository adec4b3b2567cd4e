"""Commands `umg usage` and `umg requests show`, on the records of a gateway."""

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.support.gateways import running
from tests.support.processes import run

CONFIG = """\
channels:
- {name: sandbox, protocols: [sandbox], pace: 0, models: [famO-5-mini, famX-4]}
models:
  famO-5-mini: {price: {input: 1000, output: 2000}}
"""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Return the files of a gateway that has served three calls."""
    data = tmp_path_factory.mktemp("usage")
    (data / "umg.yaml").write_text(CONFIG)
    async with running(CONFIG, data) as gateway, aiohttp.ClientSession() as session:
        for request_id, model in (("one", "famO-5-mini"), ("two", "famO-5-mini"), ("three", "famX-4")):
            body = {"model": model, "messages": [{"role": "user", "content": "Hi"}]}
            headers = {**gateway.headers, "x-request-id": request_id}
            async with session.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers) as answer:
                assert answer.status == 200
    return ("--config", str(data / "umg.yaml"), "--data", str(data))


async def test_usage_is_printed_as_json_csv_and_a_table(files: tuple[str, ...]) -> None:
    code, out, err = await run("usage", "--by", "model,key", "--json", *files)
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [(row["model"], row["key_name"], row["requests"], row["failed"]) for row in rows] == [
        ("famO-5-mini", "bootstrap", 2, 0),
        ("famX-4", "bootstrap", 1, 0),
    ]
    mini = rows[0]
    assert mini["micro_credits"] == mini["input_tokens"] * 1000 + mini["output_tokens"] * 2000
    _, out, _ = await run("usage", "--by", "model,key", "--csv", *files)
    assert [{key: str(value) for key, value in row.items()} for row in rows] == list(csv.DictReader(io.StringIO(out)))
    _, out, _ = await run("usage", "--by", "day,channel", *files)
    heading, row = out.splitlines()[:2]
    assert heading.split() == [
        "day",
        "channel",
        "requests",
        "failed",
        "input",
        "cached",
        "output",
        "reasoning",
        "credits",
    ]
    assert row.split()[1:4] == ["sandbox", "3", "0"]
    assert row.split()[-1] == f"{mini['micro_credits'] / 1e6:.6f}"


async def test_usage_before_the_time_is_left_out(files: tuple[str, ...]) -> None:
    tomorrow = datetime.now(UTC).replace(year=datetime.now(UTC).year + 1)
    assert (await run("usage", "--since", tomorrow.isoformat(), "--json", *files))[:2] == (0, "")


async def test_the_record_of_a_call_is_found_by_its_request_id(files: tuple[str, ...]) -> None:
    code, out, _ = await run("requests", "show", "two", *files)
    fields = {line.strip().split("  ")[0]: line.strip().split("  ")[-1].strip() for line in out.splitlines()}
    assert code == 0
    assert (fields["request"], fields["model"], fields["outcome"]) == ("two", "famO-5-mini", "OK")
    code, out, err = await run("requests", "show", "four", *files)
    assert (code, out) == (1, "")
    assert "there is no record of four" in err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--by", "hour"), "--by"),
        (("--since", "yesterday"), "--since"),
        (("--json", "--csv"), "--csv"),
    ],
)
async def test_a_wrong_flag_is_named(arguments: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    code, _, err = await run("usage", *arguments, "--data", str(tmp_path))
    assert code == 2
    assert expected in err


async def test_no_database_is_made(tmp_path: Path) -> None:
    code, _, err = await run("usage", "--data", str(tmp_path / "none"))
    assert (code, "there is no database" in err) == (1, True)
    assert not (tmp_path / "none").exists()
