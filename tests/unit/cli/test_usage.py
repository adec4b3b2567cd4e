"""Commands `umg usage`, `umg requests` and `umg models`, on the database and at the gateway that has it."""

import asyncio
import csv
import io
import json
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.support.gateways import KEY, Running, running
from tests.support.processes import run

CONFIG = """\
channels:
- {name: sandbox, protocols: [sandbox], pace: 0, models: [famO-5-mini, famX-4]}
models:
  famO-5-mini: {price: {input: 1000, output: 2000}}
"""
CALLS = (("one", "famO-5-mini", "Hi"), ("two", "famO-5-mini", "Hi"), ("three", "famX-4", "[[fail]]"))

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Source:
    flags: tuple[str, ...]

    async def run(self, *arguments: str) -> tuple[int, str, str]:
        return await run(*arguments, *self.flags, environment={"UMG_ADMIN_KEY": KEY})

    async def output(self, *arguments: str) -> str:
        code, out, err = await self.run(*arguments)
        assert (code, err) == (0, "")
        return out


async def call(gateway: Running, request_id: str, model: str, text: str) -> None:
    body = {"model": model, "messages": [{"role": "user", "content": text}], "stream": request_id == "two"}
    body["user"] = f"user-{model}"
    headers = {**gateway.headers, "x-request-id": request_id}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers) as answer,
    ):
        await answer.read()
        assert (answer.status == 200) == (text == "Hi")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["database", "gateway"])
async def source(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncGenerator[Source, None]:
    """Yield the place of the records of three calls; a gateway that ends writes its records."""
    data = tmp_path_factory.mktemp("usage")
    (data / "umg.yaml").write_text(CONFIG)
    async with running(CONFIG, data) as gateway:
        for each in CALLS:
            await call(gateway, *each)
    if request.param == "database":
        yield Source(("--config", str(data / "umg.yaml"), "--data", str(data)))
    else:
        async with running(CONFIG, data) as gateway:
            yield Source(("--gateway", gateway.url))


async def test_usage_is_printed_as_json_lines_csv_and_a_table(source: Source) -> None:
    outputs = await asyncio.gather(
        source.output("usage", "--by", "model,key", "--format", "jsonl"),
        source.output("usage", "--by", "model,key", "--format", "csv"),
        source.output("usage", "--by", "day,channel,model"),
        source.output("usage", "--by", "model", "--chart"),
    )
    rows = [json.loads(line) for line in outputs[0].splitlines()]
    assert [(row["model"], row["key_name"], row["requests"], row["failed"]) for row in rows] == [
        ("famO-5-mini", "bootstrap", 2, 0),
        ("famX-4", "bootstrap", 1, 1),
    ]
    mini = rows[0]
    assert mini["micro_credits"] == mini["input_tokens"] * 1000 + mini["output_tokens"] * 2000
    assert [{key: str(value) for key, value in row.items()} for row in rows] == list(
        csv.DictReader(io.StringIO(outputs[1]))
    )
    heading, first, second, total, begin = (line.split() for line in outputs[2].splitlines())
    assert heading == [
        "day",
        "channel",
        "model",
        "requests",
        "failed",
        "input",
        "cached",
        "share",
        "output",
        "reasoning",
        "credits",
    ]
    assert [first[1:5], second[1:5]] == [["sandbox", "famO-5-mini", "2", "0"], ["sandbox", "famX-4", "1", "1"]]
    assert (total[:3], first[-1]) == (["total", "3", "1"], f"{mini['micro_credits'] / 1e6:.6f}")
    day, minute = f"{first[0]}T00:00Z", r"T\d\d:\d\dZ"
    assert re.fullmatch(
        f"begin of stored usage: records {first[0]}{minute}, totals by minute {first[0]}{minute},"
        f" by hour {first[0]}T\\d\\d:00Z, by day {day}",
        " ".join(begin),
    )
    assert outputs[3].splitlines()[1].split()[-1] == "█" * 24
    assert "█" not in outputs[2]


async def test_usage_is_selected_by_time_key_model_and_channel(source: Source) -> None:
    flags = ("usage", "--by", "hour", "--format", "jsonl")
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    outputs = await asyncio.gather(
        source.output(*flags, "--model", "famX-4", "--key", "bootstrap", "--channel", "sandbox", "--until", tomorrow),
        source.output(*flags, "--since", "1d", "--until", "1h"),
        source.run(*flags, "--key", "nobody"),
    )
    [row] = map(json.loads, outputs[0].splitlines())
    assert row["requests"] == 1
    assert row["hour"].endswith(":00Z")
    assert outputs[1] == ""
    assert (outputs[2][0], "there is no such key" in outputs[2][2]) == (1, True)


async def test_usage_and_records_of_end_users_are_printed(source: Source) -> None:
    outputs = await asyncio.gather(
        source.output("usage", "--by", "end-user", "--format", "jsonl"),
        source.output("usage", "--by", "end-user"),
        source.output("requests", "list", "--end-user", "user-famX-4,nobody", "--format", "jsonl"),
        source.output("requests", "show", "two"),
        source.run("usage", "--by", "end-user,day"),
        source.run("usage", "--by", "end-user", "--model", "famX-4"),
    )
    mini, failed = map(json.loads, outputs[0].splitlines())
    assert (mini["end_user"], mini["requests"], mini["failed"]) == ("user-famO-5-mini", 2, 0)
    assert mini["micro_credits"] == mini["input_tokens"] * 1000 + mini["output_tokens"] * 2000
    assert (failed["end_user"], failed["requests"], failed["failed"]) == ("user-famX-4", 1, 1)
    heading, first, _, total = (line.split() for line in outputs[1].splitlines())
    assert heading == ["end", "user", "requests", "failed", "input", "output", "credits"]
    assert (first[:2], total[:3]) == (["user-famO-5-mini", "2"], ["total", "3", "1"])
    [row] = map(json.loads, outputs[2].splitlines())
    assert (row["request_id"], row["end_user"]) == ("three", "user-famX-4")
    assert fields(outputs[3])["end user"] == "user-famO-5-mini"
    assert [(code, "--by" in err) for code, _, err in outputs[4:]] == [(2, True)] * 2


def fields(out: str) -> dict[str, str]:
    return {line[:19].strip(): line[19:] for line in out.partition("attempts:")[0].splitlines()}


async def test_the_record_of_a_call_is_found_by_its_request_id(source: Source) -> None:
    streamed, failed, unknown = await asyncio.gather(
        source.output("requests", "show", "two"),
        source.output("requests", "show", "three"),
        source.run("requests", "show", "four"),
    )
    found = fields(streamed)
    assert (found["request"], found["model"], found["outcome"], found["channel"]) == (
        "two",
        "famO-5-mini",
        "OK",
        "sandbox",
    )
    assert found["key"].startswith("bootstrap (sk-u")
    assert float(found["ms to first output"]) <= float(found["ms"])
    assert "ok" in streamed.partition("attempts:")[2]
    found = fields(failed)
    assert (found["outcome"] != "OK", found["error"] != "", found["credits"]) == (True, True, "0.000000")
    assert unknown[:2] == (1, "")
    assert "there is no record of four" in unknown[2]


async def test_records_are_listed_newest_first(source: Source) -> None:
    outputs = await asyncio.gather(
        source.output("requests", "list"),
        source.output("requests", "list", "--limit", "2", "--format", "jsonl"),
        source.output("requests", "list", "--failed", "--format", "csv"),
    )
    listed = [line.split()[1:3] for line in outputs[0].splitlines()]
    assert listed == [["request", "key"], ["three", "bootstrap"], ["two", "bootstrap"], ["one", "bootstrap"]]
    records = [json.loads(line) for line in outputs[1].splitlines()]
    assert [record["request_id"] for record in records] == ["three", "two"]
    assert [attempt["channel"] for attempt in records[1]["attempts"]] == ["sandbox"]
    [row] = csv.DictReader(io.StringIO(outputs[2]))
    assert (row["request_id"], row["model"], row["attempts"], row["micro_credits"]) == ("three", "famX-4", "2", "0")


async def test_models_are_listed_with_their_channels(source: Source) -> None:
    flags = source.flags if "--gateway" in source.flags else (*source.flags, "--http", "127.0.0.1:1")
    code, out, err = await run("models", *flags, environment={"UMG_ADMIN_KEY": KEY})
    assert (code, err) == (0, "")
    table, _, failures = out.partition("last failures")
    rows = [line.split("  ") for line in table.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    state = "healthy" if "--gateway" in flags else "-"
    assert [(row[0], *row[-3:]) for row in cells[1:]] == [
        ("famO-5-mini", "sandbox (famO-5-mini)", "1000 / 2000", state),
        ("famX-4", "sandbox (famX-4)", "free", state),
    ]
    assert "  sandbox: server_error, " in failures


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("usage", "--by", "colour"), "--by"),
        (("usage", "--by", "day,hour"), "--by"),
        (("usage", "--since", "yesterday"), "--since"),
        (("usage", "--since", "1h", "--until", "1d"), "--until"),
        (("usage", "--format", "xml"), "--format"),
        (("requests", "list", "--limit", "0"), "--limit"),
        (("models", "--explain", "m", "--gateway", "http://127.0.0.1:1"), "--explain"),
    ],
)
async def test_a_wrong_flag_is_named(arguments: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    code, _, err = await run(*arguments, "--data", str(tmp_path))
    assert code == 2
    assert expected in err


async def test_no_database_is_made(tmp_path: Path) -> None:
    code, _, err = await run("usage", "--data", str(tmp_path / "none"))
    assert (code, "there is no database" in err) == (1, True)
    assert not (tmp_path / "none").exists()
