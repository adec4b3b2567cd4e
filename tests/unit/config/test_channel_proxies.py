"""Proxies of channels and of URLs that callers name, from the config and the environment."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from umg_grpc.base.proxy_rules import EXPECTED_RULES, NO_PROXIES
from umg_grpc.config import Config, ConfigError, parse
from umg_grpc.config.channel_proxies import channel_proxy
from umg_grpc.config.config_hash import config_hash

PROXY, OTHER = "http://me:secret-word@proxy.example:3128", "http://other.example:8888"
CHANNEL = "{name: main, protocols: [chat], base_url: 'https://api.vendor.example/v1', models: [m]"
REMOTE = f"channels: [{CHANNEL}}}]\n"
LOCAL = "channels: [{name: own, protocols: [chat], base_url: 'http://localhost:8000/v1', models: [m]}]\n"
SANDBOX = "channels: [{name: sandbox, protocols: [sandbox], models: [famO-5]}]\n"


def proxy_of(config: Config, url: str = "") -> tuple[str, str] | None:
    [channel] = config.channels
    found = channel_proxy(channel, config.proxies, url or channel.base_url)
    return None if found is None else (found.url, found.source)


@dataclass(frozen=True)
class Chosen:
    """Config and environment, and the URL of the proxy of its channel with its source."""

    id: str
    text: str
    environment: Mapping[str, str]
    proxy: tuple[str, str] | None


CHOSEN = [
    Chosen("that of the environment", REMOTE, {"HTTPS_PROXY": PROXY}, (PROXY, "HTTPS_PROXY")),
    Chosen("a place without one", REMOTE, {"HTTPS_PROXY": PROXY, "NO_PROXY": "vendor.example"}, None),
    Chosen("this machine", LOCAL, {"HTTP_PROXY": PROXY}, None),
    Chosen(
        "that of the channel",
        f"channels: [{CHANNEL}, proxy: '{OTHER}'}}]",
        {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"},
        (OTHER, "proxy of the channel"),
    ),
    Chosen("none of the channel", f"channels: [{CHANNEL}, proxy: direct}}]", {"HTTPS_PROXY": PROXY}, None),
]


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.id)
def test_a_channel_has_its_own_proxy_or_that_of_the_environment(case: Chosen) -> None:
    assert proxy_of(parse(case.text, "umg.yaml", case.environment)) == case.proxy


def test_urls_of_callers_have_only_the_proxy_that_the_config_names() -> None:
    environment = {"HTTPS_PROXY": PROXY, "HTTP_PROXY": PROXY, "NO_PROXY": "files.example"}
    assert parse(REMOTE, "umg.yaml", environment).egress.proxies == NO_PROXIES
    rules = parse(f"{REMOTE}egress: {{proxy: '{OTHER}'}}\n", "umg.yaml", environment).egress.proxies
    found = rules.of_url("https://hook.example/a")
    assert found is not None
    assert (found.url, found.source) == (OTHER, "egress.proxy")
    assert rules.of_url("https://files.example/a") is None


@dataclass(frozen=True)
class Unusable:
    """Config that does not load, and the end of its problem."""

    id: str
    text: str
    environment: Mapping[str, str]
    problem: str


URL = "expected a URL, http:// or https:// with a host and without a query"
UNUSABLE = [
    Unusable(
        "of the environment",
        REMOTE,
        {"HTTPS_PROXY": "socks5://me:secret-word@a:1"},
        f"umg.yaml:1: expected the environment variable HTTPS_PROXY to be {EXPECTED_RULES}",
    ),
    Unusable(
        "of all schemes",
        REMOTE,
        {"all_proxy": "http://secret-word@:3128"},
        f"umg.yaml:1: expected the environment variable all_proxy to be {EXPECTED_RULES}",
    ),
    Unusable("of callers' URLs", f"{SANDBOX}egress: {{proxy: 'socks5://a'}}", {}, f"umg.yaml:2: egress.proxy: {URL}"),
    Unusable("of the channel", f"channels: [{CHANNEL}, proxy: none}}]", {}, f"umg.yaml:1: channels[0].proxy: {URL}"),
]


@pytest.mark.parametrize("case", UNUSABLE, ids=lambda case: case.id)
def test_an_unusable_proxy_is_a_problem_that_names_it(case: Unusable) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(case.text, "umg.yaml", case.environment)
    assert str(caught.value) == case.problem


@pytest.mark.parametrize(
    "text", [LOCAL, SANDBOX, f"channels: [{CHANNEL}, proxy: direct}}]"], ids=["this machine", "inside", "direct"]
)
def test_an_unusable_proxy_that_no_channel_uses_is_no_problem(text: str) -> None:
    environment = {"ALL_PROXY": "socks5://127.0.0.1:7890", "NO_PROXY": "files.example"}
    config = parse(f"{text}\negress: {{proxy: '{OTHER}'}}", "umg.yaml", environment)
    assert config.proxies.https is None
    assert config.egress.proxies.of_url("https://files.example/a") is None


def test_replicas_behind_different_proxies_have_the_same_config() -> None:
    alone, behind = (parse(REMOTE, "umg.yaml", environment) for environment in ({}, {"HTTPS_PROXY": PROXY}))
    assert config_hash(alone) == config_hash(behind)
    assert "secret-word" not in repr(behind)
