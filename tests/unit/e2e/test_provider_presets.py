"""From `umg init` to a response: presets at vendors that check path, key and model, with their error bodies."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, web
from structlog.testing import capture_logs

from tests.support.gateways import running
from tests.support.providers.every_operation import CHAT
from tests.support.providers.server import FakeProvider, ReceivedRequest, serve_provider
from tests.support.providers.short_responses import CANDIDATES, MESSAGE
from umg_grpc.cli.live_check import check_live
from umg_grpc.config import parse
from umg_grpc.config.importers.from_environment import config_text
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS

KEY = "key-of-the-vendor-0123456789"


@dataclass(frozen=True)
class Vendor:
    path: str
    """Path of its base URL."""
    model: str
    """Model as callers name it, with the prefix of the preset."""
    upstream: str
    """Model at the vendor."""
    refusal: tuple[int, Any]
    """Status and body for a wrong key."""
    header: str = "authorization"
    call: str = "/chat/completions"
    answer: Any = None

    def sent(self, key: str) -> str:
        return f"Bearer {key}" if self.header == "authorization" else key


def openai_error(message: str, code: object = "invalid_api_key", kind: str = "invalid_request_error") -> Any:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


VENDORS: Mapping[str, Vendor] = {
    "openai": Vendor("/v1", "gpt-5", "gpt-5", (401, openai_error(f"Incorrect API key provided: {KEY}."))),
    "anthropic": Vendor(
        "/v1",
        "claude-opus-4-5",
        "claude-opus-4-5",
        (401, {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}),
        header="x-api-key",
        call="/messages",
        answer=MESSAGE,
    ),
    "gemini": Vendor(
        "/v1beta",
        "gemini-2.5-flash",
        "gemini-2.5-flash",
        (
            400,
            {
                "error": {
                    "code": 400,
                    "message": "API key not valid. Please pass a valid API key.",
                    "status": "INVALID_ARGUMENT",
                    "details": [
                        {
                            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                            "reason": "API_KEY_INVALID",
                            "domain": "g",
                        }
                    ],
                }
            },
        ),
        header="x-goog-api-key",
        call="/models/gemini-2.5-flash:generateContent",
        answer=CANDIDATES,
    ),
    "azure": Vendor(
        "/openai/v1",
        "azure/my-deployment",
        "my-deployment",
        (401, {"error": {"code": "401", "message": "Access denied due to invalid subscription key."}}),
        header="api-key",
    ),
    "openrouter": Vendor(
        "/api/v1", "openrouter/vendor/m", "vendor/m", (401, {"error": {"message": "User not found.", "code": 401}})
    ),
    "groq": Vendor("/openai/v1", "groq/llama-3.3-70b", "llama-3.3-70b", (401, openai_error("Invalid API Key"))),
    "together": Vendor("/v1", "together/meta/llama", "meta/llama", (401, openai_error("Invalid API key provided."))),
    "fireworks": Vendor(
        "/inference/v1",
        "fireworks/llama-v3",
        "accounts/fireworks/models/llama-v3",
        (401, {"error": {"object": "error", "type": "invalid_request_error", "message": "unauthorized"}}),
    ),
    "mistral": Vendor("/v1", "mistral-large-latest", "mistral-large-latest", (401, {"detail": "Unauthorized"})),
    "deepseek": Vendor(
        "/v1",
        "deepseek-chat",
        "deepseek-chat",
        (401, openai_error("Authentication Fails", "invalid_request_error", "authentication_error")),
    ),
    "xai": Vendor("/v1", "grok-4", "grok-4", (401, {"code": "Unauthorized", "error": "Invalid API key."})),
    "cohere": Vendor("/compatibility/v1", "command-a", "command-a", (401, {"message": "invalid api token"})),
}


class Vendors(FakeProvider):
    """All vendors at one address, each below its name."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        name, _, below = received.path.removeprefix("/").partition("/")
        vendor, path = VENDORS[name], f"/{below}"
        if path not in {vendor.path + vendor.call, f"{vendor.path}/models"}:
            return web.json_response(openai_error(f"Invalid URL ({request.method} {path})", None), status=404)
        if received.headers.get(vendor.header) != vendor.sent(KEY):
            return web.json_response(vendor.refusal[1], status=vendor.refusal[0])
        if path.endswith("/models"):
            row = {"id": vendor.upstream, "name": f"models/{vendor.upstream}"}
            return web.json_response({"data": [row], "models": [row]})
        if name == "anthropic":
            assert received.headers["anthropic-version"]
        if name != "gemini":
            assert received.json["model"] == vendor.upstream
        return web.json_response(vendor.answer or CHAT)


def written(url: str, key: str) -> tuple[str, dict[str, str]]:
    """Return the file of `umg init` with one edited line for each provider, and the environment."""
    environment = {PROVIDER_PRESETS[name].keys[0]: key for name in VENDORS}
    environment["AZURE_OPENAI_ENDPOINT"] = f"{url}/azure"
    lines = config_text(environment).splitlines()
    lines = [line for line in lines if not line.startswith("  - provider: cohere-rerank ")]  # the same key, no texts
    for name, vendor in VENDORS.items():
        if name != "azure":  # its address is in the environment
            number = next(n for n, line in enumerate(lines) if line.startswith(f"  - provider: {name} "))
            lines.insert(number + 1, f"    base_url: {url}/{name}{vendor.path}")
    return "\n".join(lines), environment


async def answers(url: str, headers: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    found = {}
    async with ClientSession() as session:
        for name, vendor in VENDORS.items():
            body = {"model": vendor.model, "messages": [{"role": "user", "content": "Hi"}]}
            async with session.post(f"{url}/v1/chat/completions", json=body, headers=headers) as response:
                found[name] = response.status, await response.text()
    return found


async def test_each_preset_answers_after_init_and_one_edited_line(tmp_path: Path) -> None:
    async with serve_provider(Vendors()) as vendors:
        text, environment = written(vendors.url, KEY)
        async with running(parse(text, "umg.yaml", environment), tmp_path) as made:
            found = await answers(made.url, made.headers)
    for name, (status, body) in found.items():
        assert status == 200, (name, body)
        assert json.loads(body)["choices"][0]["message"]["content"] == "Hello", name


async def test_a_wrong_key_is_named_to_the_operator_and_not_to_the_caller(tmp_path: Path, capsys: Any) -> None:
    wrong = "another-wrong-key-9876wxyz"
    async with serve_provider(Vendors()) as vendors:
        text, environment = written(vendors.url, wrong)
        config = parse(text, "umg.yaml", environment)
        with capture_logs() as logs:
            async with running(config, tmp_path) as made:
                found = await answers(made.url, made.headers)
            assert await check_live(config) == 1
    kinds = {line["channel"]: line["kind"] for line in logs if line["event"] == "channel failed"}
    assert kinds == dict.fromkeys(VENDORS, "wrong_key")
    for name, (status, body) in found.items():
        assert status == 502, (name, body)
        assert not any(word in body for word in (wrong, KEY, vendors.url)), name
    rows = [line for line in capsys.readouterr().out.splitlines() if " FAILED " in line]
    assert len(rows) == len(VENDORS)
    for row in rows:
        assert "the provider refuses the key ...wxyz: replace `api_key`" in row
        assert wrong not in row
