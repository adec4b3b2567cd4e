"""Ids with control and directional characters in the log, in tables and in metrics: people see escapes of them."""

import json
import unicodedata
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from tests.support.databases import create_database
from tests.support.processes import run, serve
from tests.support.serving import serving
from umg_grpc.cli.text_tables import Column, print_table

ID = "a\u202egpj\u2066\u200b\x9b31m\U000e0041z"
ESCAPED = r"a\u202egpj\u2066\u200b\u009b31m"


def invisible(text: str) -> set[str]:
    return {each for each in text if each != "\n" and not each.isprintable() and unicodedata.category(each) != "Zs"}


async def models(_: web.Request) -> web.Response:
    return web.json_response({"data": [{"id": ID, "object": "model"}]})


async def answer(_: web.Request) -> web.Response:
    return web.json_response({"error": {"message": f"no {ID}", "code": ID}}, status=400)


async def test_ids_of_providers_are_escaped_in_the_log_the_tables_and_the_metrics(tmp_path: Path) -> None:
    app = web.Application()
    app.router.add_get("/v1/models", models)
    app.router.add_post("/v1/chat/completions", answer)
    config = tmp_path / "umg.yaml"
    async with serving(app) as url:
        config.write_text(
            "discovery: {wait: 60}\nchannels:\n"
            f"  - {{name: c, protocols: [chat], base_url: {url}/v1, api_key: k, models: discover}}\n"
        )
        async with serve(tmp_path / "data", "--config", str(config)) as gateway:
            body = {"model": ID, "messages": [{"role": "user", "content": "x"}]}
            async with aiohttp.ClientSession(gateway.http, headers=gateway.headers) as session:
                async with session.post("/v1/chat/completions", json=body) as response:
                    assert response.status == 400
                line = await gateway.until_logged('"call"')
                async with session.get("/metrics") as response:
                    metrics = await response.text()
            code, table, _ = await run("models", "--data", str(gateway.data), "--config", str(config))
    assert json.loads(line)["model"] == ID
    assert ESCAPED in line
    assert not invisible("".join(gateway.log))
    assert not invisible(metrics)
    labels = {
        value
        for family in text_string_to_metric_families(metrics)
        for sample in family.samples
        for value in sample.labels.values()
    }
    assert any(value.startswith(ESCAPED) for value in labels)
    assert (code, invisible(table)) == (0, set())


def test_cells_of_tables_show_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([Column("model")], [[ID], ["b\x1b[2Kc"]])
    out = capsys.readouterr().out
    assert ESCAPED in out
    assert r"b\u001b[2Kc" in out
    assert not invisible(out)


COMMANDS = [
    ("check", "umg.yaml"),
    *(
        (*command, "--config", "umg.yaml", "--data", ".")
        for command in (
            ("models", "--explain", "other"),
            ("models", "--forget", "a\u202eb"),
            ("prices", "explain", "a\u202eb"),
        )
    ),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0] + command[1])
async def test_ids_of_a_config_are_escaped_in_the_lines_of_commands(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "umg.yaml").write_text(
        'channels: [{name: c, protocols: [chat], base_url: "https://x.example/v1", api_key: k, models: ["a\\u202eb"]}]\n'
        'aliases: {other: "a\\u202eb"}\n'
    )
    await create_database(tmp_path)
    places = {"umg.yaml": str(tmp_path / "umg.yaml"), ".": str(tmp_path)}
    code, out, _ = await run(*(places.get(word, word) for word in command))
    assert code == 0
    assert r"a\u202eb" in out
    assert not invisible(out)
