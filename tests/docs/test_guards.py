"""Page on guards: each recipe's config gives its header, the programs decide, and the tables agree with the code."""

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web
from google.protobuf import json_format

from tests.docs.tables import DOCS, quoted, rows, section
from tests.support.gateways import KEY, running
from tests.support.proxies import free_ports
from tests.support.serving import serving
from umg_grpc.config import parse
from umg_grpc.config.guard_section import GUARD_KINDS
from umg_grpc.knowledge.sensitive_text_patterns import GUARDED_PATTERNS, PATTERN_SETS
from umg_grpc.service.guardrails.guard_driver import GUARD_DECISIONS
from umg_grpc.v1 import pb

PAGE = (DOCS / "guards.md").read_text(encoding="utf-8")
SECTION = section(PAGE, "Recipes")
RECIPES = re.findall(r"```yaml\n(.*?)```\n\n```\nx-umg-guards: (.*?)\n```", SECTION, re.DOTALL)
TITLES = re.findall(r"^\*\*(.+?)\.\*\*", SECTION, re.MULTILINE)
FLAGGED = "a text of [[flag:violence]]"
CHANNEL = "channels:\n  - {name: simulated, protocols: [sandbox], models: [m], pace: 0}\n"
PROMPT = f"AKIA{'IOSFODNN7EXAMPLE'} and E-123456 of Project Falcon"
CONFIGS = re.findall(r"```yaml\n(guards:.*?)```", PAGE, re.DOTALL)
MODERATION = re.findall(r"```python\n(.*?)```", section(PAGE, "A service over gRPC: a moderation model"), re.DOTALL)[0]
PRESIDIO = re.findall(r"```python\n(.*?)```", section(PAGE, "A webhook: Presidio"), re.DOTALL)[0]
EXAMPLES = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)


async def call(url: str, headers: Mapping[str, str], text: str) -> tuple[int, str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 5}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{url}/v1/chat/completions", json=body) as got,
    ):
        return got.status, got.headers.get("x-umg-guards", ""), await got.json()


@pytest.mark.parametrize(("config", "header"), RECIPES, ids=TITLES)
async def test_each_recipe_has_its_header(config: str, header: str, tmp_path: Path) -> None:
    async with running(CHANNEL + config, tmp_path) as gateway:
        status, shown, _ = await call(gateway.url, gateway.headers, PROMPT)
    assert (status, shown) == (400 if "refused" in header else 200, header)


def test_every_recipe_is_run() -> None:
    assert len(RECIPES) == len(TITLES) == SECTION.count("```yaml") == 4


@pytest.mark.parametrize("config", CONFIGS)
def test_every_config_of_the_page_is_valid(config: str) -> None:
    assert parse(CHANNEL + config, "page.yaml", {}).guards


def test_the_tables_have_every_kind_and_decision() -> None:
    assert [quoted(cells[0])[0] for cells in rows(PAGE, "Kinds")][: len(GUARD_KINDS)] == list(GUARD_KINDS)
    assert sorted(quoted(cells[0])[0] for cells in rows(PAGE, "Decisions")) == sorted(GUARD_DECISIONS)


def test_the_table_of_sets_has_every_pattern() -> None:
    found = {quoted(cells[0])[0]: quoted(cells[1]) for cells in rows(PAGE, "Sets of patterns")}
    assert found == {
        name: [*dict.fromkeys(row.name for row in GUARDED_PATTERNS if row.set == name)] for name in PATTERN_SETS
    }


def test_the_examples_of_a_webhook_are_the_messages_of_the_schema() -> None:
    check, decided = EXAMPLES
    json_format.Parse(check, pb.CheckRequest())
    assert json_format.Parse(decided, pb.CheckResponse()).WhichOneof("decision") == "replace"


def test_the_programs_of_the_page_are_valid() -> None:
    for program in (MODERATION, PRESIDIO):
        compile(program, "page.py", "exec")
        assert len(program.splitlines()) <= 45


@asynccontextmanager
async def moderations() -> AsyncGenerator[str, None]:
    """Serve the moderation of texts in the shape of the vendor."""

    async def respond(request: web.Request) -> web.Response:
        body = await request.json()
        flagged = [FLAGGED in text for text in body["input"]]
        results = [
            {
                "flagged": flag,
                "categories": {"violence": flag, "hate": False},
                "category_scores": {"violence": 0.9 if flag else 0.01, "hate": 0.02},
                "category_applied_input_types": {},
            }
            for flag in flagged
        ]
        return web.json_response({"id": "modr-1", "model": body["model"], "results": results})

    app = web.Application()
    app.router.add_post("/v1/moderations", respond)
    async with serving(app) as url:
        yield f"{url}/v1"


@asynccontextmanager
async def guard_program(tmp_path: Path, port: int, url: str, key: str) -> AsyncGenerator[None, None]:
    """Run the guard of the page, which calls a moderation model at a URL."""
    program = tmp_path / "moderation_guard.py"
    program.write_text(MODERATION, encoding="utf-8")
    environment = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": key}
    process = subprocess.Popen([sys.executable, str(program), str(port)], env=environment)  # noqa: ASYNC220
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            await channel.channel_ready()
        yield
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("is_own", [False, True], ids=["of the vendor", "of the gateway itself"])
async def test_the_guard_by_a_moderation_model_refuses_flagged_texts(is_own: bool, tmp_path: Path) -> None:
    [own] = free_ports(1)
    row = f"name: moderation, kind: grpc, target: '127.0.0.1:{own.grpc}', operations: [generate], timeout: 30"
    models = CHANNEL.replace("[m]", "[m, omni-moderation-latest]")
    async with running(f"{models}guards:\n  - {{{row}}}\n", tmp_path / "data") as gateway, moderations() as vendor:
        url = f"{gateway.url}/v1" if is_own else vendor
        async with guard_program(tmp_path, own.grpc, url, KEY):
            passed = await call(gateway.url, gateway.headers, "a kind text")
            refused = await call(gateway.url, gateway.headers, FLAGGED)
    assert (passed[0], passed[1].partition(",")[0]) == (200, "request:moderation=allow")
    assert (refused[0], refused[1]) == (400, "request:moderation=refused")
    assert json.dumps(refused[2]).count("flagged content") == 1
