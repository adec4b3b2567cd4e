"""Recipes: their configs and commands give the output that the pages show, and texts that they repeat are on tested pages."""

import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
import yaml
from standardwebhooks import Webhook

from scripts import docs_site
from scripts.reference import error_reasons
from tests.docs.tables import DOCS, quoted
from tests.support.databases import create_database
from tests.support.gateways import running
from tests.support.processes import run
from tests.support.telemetry_collector import collector
from umg_grpc.service.telemetry.content_capture import CAPTURE_VARIABLE, REDACT_VARIABLE

FOLDER = DOCS / "recipes"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
CHECK = "umg check umg.yaml"
SANDBOX = """
channels:
  - {name: sandbox, protocols: [sandbox], pace: 0, models: [famO-5]}
models: {famO-5: {price: {input: 1, output: 2}}}
"""


def blocks(page: str, *languages: str) -> list[str]:
    """Return the blocks of code of a page in some languages; without one those of output."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGES[page], re.DOTALL | re.MULTILINE)
    return [block for language, block in found if language in (languages or ("",))]


def config_of(page: str) -> str:
    [config] = [block for block in blocks(page, "yaml") if "channels:" in block]
    return config


def environment_of(page: str) -> dict[str, str]:
    """Return the variables that the commands of a page set."""
    lines = [line for block in blocks(page, "sh", "bash") for line in block.splitlines() if line.startswith("export ")]
    return dict(word.split("=", 1) for line in lines if "$(" not in line for word in shlex.split(line)[1:])


def commands(page: str) -> list[list[str]]:
    """Return the commands of `umg` on a page, as words."""
    text = "".join(blocks(page, "sh")).replace("\\\n", " ")
    return [shlex.split(line) for line in text.splitlines() if line.startswith("umg ")]


CHECKED = [page for page in PAGES if any(CHECK in block for block in blocks(page, "sh"))]


@pytest.mark.parametrize("page", CHECKED)
async def test_the_check_of_a_config_prints_the_output_of_its_page(page: str, tmp_path: Path) -> None:
    (tmp_path / "umg.yaml").write_text(config_of(page))
    code, out, err = await run("check", str(tmp_path / "umg.yaml"), environment=environment_of(page))
    assert (code, err) == (0, "")
    assert out.replace(f"{tmp_path}/", "") in blocks(page)


@pytest.mark.parametrize("page", ["team-budgets", "rotate-keys"])
async def test_the_commands_about_keys_work(page: str, tmp_path: Path) -> None:
    await create_database(tmp_path)
    assert len(commands(page)) >= 2
    for words in commands(page):
        code, _, err = await run(*words[1:], "--data", str(tmp_path))
        assert code == 0, (words, err)


async def test_the_keys_of_open_webui_and_of_callbacks_can_be_made(tmp_path: Path) -> None:
    await create_database(tmp_path)
    [create] = commands("open-webui")
    code, out, err = await run(*create[1:], "--data", str(tmp_path))
    assert (code, out.splitlines()[-1].startswith("sk-umg-")) == (0, True), err
    await run("keys", "create", "search", "--data", str(tmp_path))
    [secret] = commands("video-callbacks")
    code, out, err = await run(*secret[1:], "--data", str(tmp_path))
    assert code == 0, err
    assert out.strip().startswith("whsec_")


def test_the_receiver_of_callbacks_verifies_them_by_the_library() -> None:
    [code] = blocks("video-callbacks", "python")
    names: dict[str, object] = {}
    exec(code, names)
    secret, body, now = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", '{"status": "succeeded"}', datetime.now(UTC)
    signature = Webhook(secret).sign("msg_1", now, body)
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(int(now.timestamp())), "webhook-signature": signature}
    receive = names["receive"]
    assert callable(receive)
    assert receive(secret, headers, body.encode()) == {"status": "succeeded"}


async def test_traces_of_calls_have_the_names_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = environment_of("langfuse")
    async with collector() as received:
        variables |= {"OTEL_EXPORTER_OTLP_ENDPOINT": received.url}
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        async with running(SANDBOX, tmp_path, variables) as gateway, aiohttp.ClientSession() as session:
            body = {"model": "famO-5", "messages": [{"role": "user", "content": "Hi"}]}
            url = f"{gateway.url}/v1/chat/completions"
            async with session.post(url, json=body, headers=gateway.headers) as response:
                assert response.status == 200
    attributes = {name for span in received.spans for name in span.attributes}
    named = {
        word for word in quoted(docs_site.FENCE.sub("", PAGES["langfuse"])) if word.startswith(("gen_ai.", "umg."))
    } - {"umg.yaml"}
    assert named <= attributes
    assert len(named) == 8
    assert CAPTURE_VARIABLE in variables
    assert REDACT_VARIABLE in PAGES["langfuse"]


def test_the_collector_of_the_page_receives_from_the_gateway() -> None:
    config = yaml.safe_load(next(block for block in blocks("langfuse", "yaml") if "receivers:" in block))
    endpoint = environment_of("langfuse")["OTEL_EXPORTER_OTLP_ENDPOINT"]
    assert config["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"] == endpoint.removeprefix("http://")
    [(name, exporter)] = config["exporters"].items()
    assert name.startswith("otlphttp/")
    assert exporter["endpoint"].endswith("/api/public/otel")
    assert config["service"]["pipelines"]["traces"] == {
        "receivers": [*config["receivers"]], "processors": [*config["processors"]], "exporters": [name]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("recipe", "page"), [("fallback", "fallbacks.md"), ("guards", "guards.md"), ("open-webui", "clients.md")]
)
def test_settings_and_headers_that_a_recipe_repeats_are_those_of_the_page_that_runs_them(
    recipe: str, page: str
) -> None:
    whole = (DOCS / page).read_text(encoding="utf-8")
    shown = [block for block in blocks(recipe) if block.startswith("x-umg-")] + blocks(recipe, "bash")
    config = next(iter(blocks(recipe, "yaml")), "")
    settings = re.sub(r"^channels:\n(?: {2}- .*\n)+", "", config)
    assert shown
    assert [text for text in (*shown, settings) if text not in whole] == []


async def test_the_price_of_a_model_is_explained_as_on_the_page(tmp_path: Path) -> None:
    [words] = [words for words in commands("prices") if words[1] == "prices"]
    code, out, err = await run(*words[1:])
    assert code == 0, err
    [shown] = [block for block in blocks("prices") if "row:" in block]
    assert out.startswith(shown)


def test_each_reason_of_the_table_has_its_status() -> None:
    reasons = {each.name: each.http_status for each in error_reasons.reasons()}
    rows = re.findall(r"^\| (\d{3}) \| `(\w+)` \|", PAGES["refused-calls"], re.MULTILINE)
    assert len(rows) > 12
    assert [(status, name) for status, name in rows if str(reasons[name]) != status] == []
