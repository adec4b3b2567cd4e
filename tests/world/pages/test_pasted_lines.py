"""The lines of the pages and of the start of `umg serve`, run as people run them, with the model ids of a hostile
provider: the id arrives as it is, nothing of it runs, and the line has no character that a terminal obeys.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web

from tests.support.gateways import KEY
from tests.support.processes import serve
from tests.support.providers.hostile_model_ids import HOSTILE_IDS, SERVED
from tests.support.serving import serving
from tests.world.sdk.node_runner import NODE, Node, installed
from umg_grpc.base.shell_quoting import shell_json, shell_word

INPUT = "it's \\ \n"
ASSETS = Path(__file__).parents[3] / "http_facade" / "assets"
MAKE = f"""
import {{ readFileSync }} from "node:fs";
import {{ curl }} from "{(ASSETS / "snippets.js").as_uri()}";
import {{ snippets }} from "{(ASSETS / "playground" / "code.js").as_uri()}";
const [address, key, models] = JSON.parse(readFileSync(0, "utf8"));
const path = (model) => `${{address}}/v1/models/${{encodeURIComponent(model)}}?name=it's`;
const body = (model) => JSON.stringify({{ model, input: {json.dumps(INPUT)} }}, null, 2);
const call = (model, more) => ({{ method: "GenerationService/StreamGenerate", message: {{ request: {{
  model, messages: [{{ role: "ROLE_USER", parts: [{{ text: {{ text: model }} }}] }}], ...more }} }} }});
const code = (kind, made) => snippets(address, made).map((each) => [`${{kind}}${{each.title}}`, each.code]);
console.log(JSON.stringify(models.map((model) => Object.fromEntries([
  ...code("", call(model, {{}})),
  ...code("contract ", call(model, {{ topK: 3 }})),
  ["get", curl("GET", path(model), key, null)],
  ["post", curl("POST", `${{address}}/v1/responses`, key, body(model))],
]))));
"""
"""Script that prints the code of the playground and the lines of the API reference for each model. A call with `topK`
has no form in the chat format: its code is that of the contract.
"""
SHELLS = [path for name in ("bash", "dash", "zsh", "ksh", "busybox") if (path := shutil.which(name))]
MODELS = [case.model for case in HOSTILE_IDS]
GREETING = "Say hello in one sentence."
"""Message of the line that a start prints."""
KINDS = ("", "contract ")
"""Beginnings of the names of the code in a common format, and of that of the contract."""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Endpoint:
    """Server with the paths of the lines, which records the models of its calls."""

    models: list[str] = field(default_factory=list)

    async def list_models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": SERVED, "object": "model"}]})

    async def model(self, request: web.Request) -> web.Response:
        assert request.query["name"] == "it's"
        self.models.append(request.match_info["model"])
        return web.json_response({})

    async def chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.models.append(body["model"])
        assert body["messages"][0]["content"] in {body["model"], GREETING}
        choice = {"index": 0, "delta": {"role": "assistant", "content": "one"}, "finish_reason": "stop"}
        chunk = {"id": "c", "created": 1, "model": "m", "object": "chat.completion.chunk", "choices": [choice]}
        frames = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
        return web.Response(body=frames, content_type="text/event-stream")

    async def contract(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.models.append(body["model"])
        assert body["topK"] == 3
        return web.json_response({})

    async def responses(self, request: web.Request) -> web.Response:
        body = await request.json()
        assert body["input"] in ("Hello", INPUT)
        self.models.append(body["model"])
        return web.json_response({"id": "r", "object": "response", "output": []})


@dataclass(frozen=True)
class Lines:
    """Lines for every hostile model id, the server that they call, and an empty current folder."""

    texts: list[dict[str, str]]
    url: str
    endpoint: Endpoint
    folder: Path

    async def arrived(self, run: Callable[[], None]) -> list[str]:
        """Run programs. Return the models that the server was called with; fail if a file was left."""
        self.endpoint.models.clear()
        await asyncio.to_thread(run)
        assert list(self.folder.iterdir()) == [], "a part of a model id was run"
        return self.endpoint.models


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lines(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Lines, None]:
    endpoint = Endpoint()
    app = web.Application()
    app.router.add_get("/v1/models", endpoint.list_models)
    app.router.add_get("/v1/models/{model:[^/]+}", endpoint.model)
    app.router.add_post("/v1/chat/completions", endpoint.chat)
    app.router.add_post("/umg.v1.GenerationService/Generate", endpoint.contract)
    app.router.add_post("/v1/responses", endpoint.responses)
    async with serving(app) as url:
        yield Lines(await asyncio.to_thread(made, url), url, endpoint, tmp_path_factory.mktemp("current"))


def made(url: str) -> list[dict[str, str]]:
    """Return the lines of the pages for the models, with the address of a server."""
    command = [str(NODE), "--input-type=module", "-e", MAKE]
    process = subprocess.run(command, input=json.dumps([url, KEY, MODELS]), capture_output=True, check=True, text=True)
    found = json.loads(process.stdout)
    assert isinstance(found, list)
    return found


def run_in(shell: str, line: str, folder: Path, **variables: str) -> str:
    command = [shell, *(["sh"] if shell.endswith("busybox") else []), "-c", line]
    environment = {**os.environ, "UMG_API_KEY": KEY, **variables}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True, text=True).stdout


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shell", SHELLS)
async def test_the_curl_line_calls_the_model_that_it_shows(lines: Lines, shell: str, kind: str) -> None:
    def run() -> None:
        for text in lines.texts:
            run_in(shell, text[f"{kind}curl"], lines.folder)

    assert await lines.arrived(run) == MODELS


@pytest.mark.parametrize("shell", SHELLS)
async def test_the_curl_lines_of_the_api_reference_have_the_path_and_the_body(lines: Lines, shell: str) -> None:
    def run() -> None:
        for text in lines.texts:
            run_in(shell, text["get"], lines.folder)
            run_in(shell, text["post"], lines.folder)

    assert await lines.arrived(run) == [model for model in MODELS for _ in range(2)]


@pytest.mark.parametrize("kind", KINDS)
async def test_the_python_lines_call_the_model_that_they_show(lines: Lines, kind: str) -> None:
    program = "import json, sys\nfor text in json.load(sys.stdin):\n    exec(compile(text, 'line', 'exec'), {})"

    def run() -> None:
        texts = json.dumps([text[f"{kind}Python"] for text in lines.texts])
        command = [sys.executable, "-c", program]
        environment = {**os.environ, "UMG_API_KEY": KEY}
        subprocess.run(
            command, input=texts, cwd=lines.folder, env=environment, capture_output=True, check=True, text=True
        )

    assert await lines.arrived(run) == MODELS


@pytest.mark.parametrize("kind", KINDS)
async def test_the_typescript_lines_call_the_model_that_they_show(lines: Lines, tmp_path: Path, kind: str) -> None:
    """They have no types, so that Node runs them."""
    node: Node = await asyncio.to_thread(installed)
    (tmp_path / "node_modules").symlink_to(node.root / "node_modules")
    names = [f"{number}.mjs" for number in range(len(MODELS))]
    for name, text in zip(names, lines.texts, strict=True):
        (tmp_path / name).write_text(text[f"{kind}TypeScript"])
    (tmp_path / "all.mjs").write_text("".join(f"await import('./{name}');\n" for name in names))

    def run() -> None:
        environment = {**os.environ, "UMG_API_KEY": KEY}
        subprocess.run([NODE, tmp_path / "all.mjs"], cwd=lines.folder, env=environment, capture_output=True, check=True)

    assert await lines.arrived(run) == MODELS


@pytest.mark.parametrize("shell", SHELLS)
async def test_the_line_of_grpc_has_the_key_the_address_and_the_request(
    lines: Lines, shell: str, tmp_path: Path
) -> None:
    grpcurl = tmp_path / "grpcurl"  # prints its arguments
    grpcurl.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    grpcurl.chmod(0o755)
    found = list[list[str]]()

    def run() -> None:
        path = f"{tmp_path}:{os.environ['PATH']}"
        for text in lines.texts:
            found.append(json.loads(run_in(shell, text["gRPC"], lines.folder, PATH=path, UMG_ADDRESS="a:1")))

    await lines.arrived(run)
    assert [json.loads(arguments.pop(4))["request"]["model"] for arguments in found] == MODELS
    method = "umg.v1.GenerationService/StreamGenerate"
    assert found == [["-plaintext", "-H", f"authorization: Bearer {KEY}", "-d", "a:1", method] for _ in MODELS]


@pytest.mark.parametrize("shell", SHELLS)
async def test_the_line_of_claude_code_has_the_address_the_key_and_the_model(
    lines: Lines, shell: str, tmp_path: Path
) -> None:
    claude = tmp_path / "claude"  # prints the arguments that Claude Code would get
    names = "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN"
    claude.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"print(json.dumps([*map(os.environ.get, {names!r}), *sys.argv[1:]]))\n"
    )
    claude.chmod(0o755)
    found = list[object]()

    def run() -> None:
        path = f"{tmp_path}:{os.environ['PATH']}"
        found.extend(json.loads(run_in(shell, text["Claude Code"], lines.folder, PATH=path)) for text in lines.texts)

    await lines.arrived(run)
    assert found == [[lines.url, KEY, f"--model={model}"] for model in MODELS]


async def test_the_line_that_a_start_prints_calls_a_model_of_a_hostile_list(lines: Lines, tmp_path: Path) -> None:
    config = tmp_path / "umg.yaml"
    config.write_text(
        "discovery: {wait: 60}\nchannels:\n"
        f"  - {{name: c, protocols: [chat], base_url: {lines.url}/v1, api_key: k, models: discover}}\n"
    )
    async with serve(tmp_path / "data", "--config", str(config)) as gateway:
        assert "it's'$(" in gateway.printed("models +(.*)")
        assert gateway.printed("models +(.*)").isprintable()

        def run() -> None:
            for shell in SHELLS:
                run_in(shell, gateway.curl, lines.folder)

        assert await lines.arrived(run) == [SERVED] * len(SHELLS)


async def test_words_of_commands_that_umg_prints_are_the_text(lines: Lines) -> None:
    """Of `umg serve` and `umg tasks watch`."""
    found = list[list[object]]()
    script = f"{sys.executable} -c 'import json, sys; print(json.dumps(sys.argv[1:]))'"

    def run() -> None:
        for shell in SHELLS:
            for model in MODELS:
                line = f"{script} {shell_word(model)} {shell_json({'model': model})}"
                word, body = json.loads(run_in(shell, line, lines.folder))
                found.append([word, json.loads(body)])

    await lines.arrived(run)
    assert found == [[model, {"model": model}] for _ in SHELLS for model in MODELS]


async def test_no_line_has_a_character_that_a_terminal_obeys(lines: Lines) -> None:
    printed = [f"{shell_word(model)} {shell_json(model)}" for model in MODELS]
    for text in [*(text for made in lines.texts for text in made.values()), *printed]:
        kinds = {unicodedata.category(character) for character in text if character != "\n"}
        assert not kinds & {"Cc", "Cf", "Zl", "Zp"}, ascii(text)


async def test_no_shell_of_windows_finds_the_end_of_a_quote_or_an_operator(lines: Lines) -> None:
    """Quotes of PowerShell are also typographic ones; cmd has double quotes only, and runs nothing inside of them."""
    for text, model in zip(lines.texts, MODELS, strict=True):
        for line in (
            text["curl"],
            text["contract curl"],
            text["post"],
            text["gRPC"],
            text["Claude Code"],
            shell_word(model),
            shell_json(model),
        ):
            assert not re.search("[\u2018-\u201f\uff07\uff02]", line), ascii(line)
            inside = re.sub(r"'[^']*'", lambda found: f"'{'_' * len(found[0])}'", line)
            assert "touch" not in inside, line
            assert not re.search(r"[&|<>^%]", line.replace("%27", "").replace("printf %b", "")), line
