"""The usual mistakes of a first config: each leads to the message that mends it."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import ClientSession
from structlog.testing import capture_logs

from tests.support.gateways import running
from tests.support.providers.scripted import succeed
from tests.support.providers.server import serve_provider
from tests.support.providers.strict_vendor import KEY, StrictVendor
from umg_grpc.cli.live_check import check_live
from umg_grpc.config import Address, ConfigError, parse
from umg_grpc.process.exposure_checks import check_exposure
from umg_grpc.process.serve_options import Options

CHAT = "name: a, protocols: [chat], base_url: 'https://llm.example/v1', models: [m]"


@dataclass(frozen=True)
class Mistake:
    id: str
    text: str
    message: str


IN_THE_FILE = [
    Mistake(
        "a misspelt key",
        f"channels: [{{{CHAT}, base_ulr: 'https://a.example/v1'}}]",
        "`base_ulr` is not known here; did you mean `base_url`?",
    ),
    Mistake(
        "a vendor as protocol",
        f"channels: [{{{CHAT.replace('[chat]', '[openai]')}}}]",
        "`openai` is a provider: set `provider: openai` in place of `protocols`",
    ),
    Mistake(
        "another name of a protocol",
        f"channels: [{{{CHAT.replace('[chat]', '[completions]')}}}]",
        "`completions` is not a protocol; did you mean `chat`?",
    ),
    Mistake("a misspelt provider", "channels: [{provider: antropic}]", "did you mean `anthropic`?"),
    Mistake(
        "the path of the call in `base_url`",
        f"channels: [{{{CHAT.replace('/v1', '/v1/chat/completions')}}}]",
        "expected https://llm.example/v1: `chat` adds /chat/completions at each call",
    ),
    Mistake(
        "a query in `base_url`",
        f"channels: [{{{CHAT.replace('/v1', '/v1?api-version=2024-10-21')}}}]",
        "expected a URL without a query; its parameters go into `query: {NAME: VALUE}`",
    ),
    Mistake(
        "a key in `base_url`",
        f"channels: [{{{CHAT.replace('llm.', 'user:sk-1@llm.')}}}]",
        "expected a URL without credentials; a key goes into `api_key`",
    ),
    Mistake(
        "a `*` without quotes",
        "channels:\n- name: a\n  protocols: [chat]\n  base_url: https://a.example/v1\n  models: [*]",
        "put a text that begins with `*`, `&`, `@`, `%` or a backquote in quotes",
    ),
    Mistake("a tab", "channels:\n\t- provider: openai", "indent by spaces: YAML permits no tabs there"),
    Mistake("no key in the environment", "channels: [{provider: openai}]", "in the environment as OPENAI_API_KEY"),
    Mistake(
        "a variable that is not set",
        f"channels: [{{{CHAT}, api_key: '${{MY_KEY}}'}}]",
        "expected the environment variable MY_KEY to be set",
    ),
    Mistake(
        "no address of the account",
        "channels: [{provider: azure, api_key: k}]",
        "expected the URL of your account: https://<resource>.openai.azure.com/openai/v1",
    ),
    Mistake(
        "no models",
        "channels: [{name: a, protocols: [chat], base_url: 'https://a.example/v1'}]",
        "expected `models`, which is missing; `provider` would fill it in",
    ),
    Mistake(
        "one name for two channels",
        f"channels: [{{{CHAT}}}, {{{CHAT}}}]",
        "expected a name of its own; `a` is taken",
    ),
]
AT_THE_PROVIDER = [
    Mistake("`/v1` twice", f"base_url: URL/v1/v1, api_key: {KEY}, models: ['*']", "set `base_url: URL/v1`"),
    Mistake("no `/v1`", f"base_url: URL, api_key: {KEY}, models: ['*']", "set `base_url: URL/v1`"),
    Mistake(
        "a wrong key",
        "base_url: URL/v1, api_key: sk-of-another-vendor, models: ['*']",
        "the provider refuses the key ...ndor: replace `api_key`",
    ),
    Mistake(
        "a model that the provider does not have",
        f"base_url: URL/v1, api_key: {KEY}, models: [gpt-lagre]",
        "no model `gpt-lagre`: correct `upstream` of the model",
    ),
    Mistake("a misspelt host", "base_url: 'http://llm.invalid/v1', models: [m]", "llm.invalid has no address"),
    Mistake(
        "a wrong port", "base_url: 'http://127.0.0.1:9/v1', models: [m]", "no connection to 127.0.0.1:9: check that"
    ),
]


@pytest.mark.parametrize("mistake", IN_THE_FILE, ids=lambda mistake: mistake.id)
def test_a_mistake_in_the_file_is_refused_with_the_remedy(mistake: Mistake) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(mistake.text, "umg.yaml", {})
    assert mistake.message in str(caught.value)


async def test_a_mistake_at_the_provider_is_explained_by_the_live_check(capsys: pytest.CaptureFixture[str]) -> None:
    async with serve_provider(StrictVendor(name="vendor", scripts=[succeed])) as vendor:
        lines = [f"- {{name: c{n}, protocols: [chat], {each.text}}}" for n, each in enumerate(AT_THE_PROVIDER)]
        text = "channels:\n" + "\n".join(lines).replace("URL", vendor.url)
        assert await check_live(parse(text, "umg.yaml", {})) == 1
    rows = [line for line in capsys.readouterr().out.splitlines() if " FAILED " in line]
    assert len(rows) == len(AT_THE_PROVIDER)
    for mistake, row in zip(AT_THE_PROVIDER, rows, strict=True):
        assert mistake.message.replace("URL", vendor.url) in row, mistake.id


async def test_a_mistyped_model_of_a_call_is_answered_with_the_nearest_ones(tmp_path: Path) -> None:
    config = "channels: [{name: a, protocols: [sandbox], models: [famO-5, famO-5-mini]}]"
    body = {"model": "famo5-mini", "messages": [{"role": "user", "content": "Hi"}]}
    async with (
        running(config, tmp_path) as made,
        ClientSession() as session,
        session.post(f"{made.url}/v1/chat/completions", json=body, headers=made.headers) as response,
    ):
        assert response.status == 404
        assert "Did you mean `famO-5-mini`" in (await response.json())["error"]["message"]


def test_a_key_over_http_is_warned_of_at_the_start(tmp_path: Path) -> None:
    config = parse(f"channels: [{{{CHAT.replace('https', 'http')}, api_key: k}}]", "umg.yaml", {})
    address = Address("127.0.0.1", 0)
    with capture_logs() as logs:
        check_exposure(Options(None, address, address, tmp_path), config, {})
    assert [line["event"] for line in logs] == ["the key of a channel is sent unencrypted: use https in its base_url"]


def test_there_are_more_than_twenty_mistakes() -> None:
    assert len({mistake.id for mistake in (*IN_THE_FILE, *AT_THE_PROVIDER)}) == 20  # with the two above, 22
