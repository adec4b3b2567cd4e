"""Settings in force: their sources and lines, defaults, and the secrets that are not in them."""

import re
from collections.abc import Mapping

import pytest

from scripts.reference.config_keys import all_keys
from umg_grpc.config import Config, parse
from umg_grpc.config.built_in_config import BUILT_IN
from umg_grpc.config.settings_in_force import Setting, SettingSource, settings_in_force
from umg_grpc.config.shown_values import ORIGIN_KEYS, SECRET_KEYS, masked

FILE, ENVIRONMENT, DEFAULT = SettingSource.FILE, SettingSource.ENVIRONMENT, SettingSource.DEFAULT
S = "s3cr3t"
"""Part of every secret below."""
VARIABLES = {
    "KEY": f"sk-{S}-of-the-environment",
    "PRIORITY": "4",
    "OPENAI_API_KEY": f"sk-{S}-of-the-preset",
    "TOKEN": f"{S}-token",
}
SECRETS = f"""
channels:
  - name: main
    protocols: [chat]
    base_url: https://a.example/v1
    api_key: [sk-{S}-inline-of-a-file-0123, "${{KEY}}"]
    headers: {{x-key: {S}-header-long-enough-for-an-end}}
    query: {{token: {S}-query}}
    proxy: http://user:{S}-proxy@proxy.example:3128
    models: [m]
  - {{provider: openai, priority: "${{PRIORITY}}"}}
  - {{name: printed, protocols: [chat], base_url: "https://b.example/v1", models: [p],
      auth: {{kind: command, command: [print-token, --password, {S}-argument]}}}}
  - {{name: azure, protocols: [chat], base_url: "https://c.example/v1", models: [a],
      auth: {{kind: azure, tenant_id: t, client_id: c, client_secret: {S}-client, scope: s}}}}
secret: {S}-signing-long-enough-to-show
accepted_secrets: [{S}-accepted-before]
database: "postgresql://umg:{S}?{S}/{S}@db.example/umg?password={S}"
redis: redis://:{S}-redis@redis.example
metrics: {{key: {S}-metrics-key}}
egress: {{proxy: "http://u:{S}@egress.example:1"}}
sign_on:
  issuers:
    - {{name: main, issuer: "https://issuer.example", client_id: umg, client_secret: "{S}-issuer"}}
guards:
  - {{kind: webhook, name: outside, url: "https://guard.example/{S}-path",
      headers: {{authorization: "Bearer {S} ${{TOKEN}}"}}}}
alerts:
  receivers:
    chat: {{kind: slack, url: "https://hooks.example/services/{S}"}}
    hook: {{kind: webhook, url: "https://ops.example/{S}", secret: "whsec_{"A" * 32}"}}
    mail: {{kind: email, host: mail.example, username: "{S}-user", password: "{S}-mail", sender: a@b.example, to: [c@d.example]}}
"""


def read(text: str, variables: Mapping[str, str] = VARIABLES) -> tuple[Config, dict[str, Setting]]:
    config = parse(text, "umg.yaml", variables)
    return config, {each.path: each for each in settings_in_force(config, variables)}


def test_no_secret_of_any_kind_is_shown() -> None:
    _, found = read(SECRETS)
    text = "\n".join(f"{each.path}={each.value}" for each in found.values())
    assert S not in text
    assert "A" * 5 not in text
    assert found["channels[0].api_key"].value == "••••0123, ${KEY}"
    assert found["channels[0].headers.x-key"].value == "••••-end"
    assert found["channels[2].auth.command"].value == "print-token, ••••, ••••"
    assert found["guards[0].headers.authorization"].value == "••••${TOKEN}"
    shown = {
        path: found[path].value for path in ("database", "redis", "channels[0].proxy", "alerts.receivers.chat.url")
    }
    assert shown == {
        "database": "postgresql://db.example/umg",
        "redis": "redis://redis.example",
        "channels[0].proxy": "http://proxy.example:3128",
        "alerts.receivers.chat.url": "https://hooks.example/••••",
    }


def test_a_setting_has_its_source_and_line() -> None:
    _, found = read(SECRETS)
    assert (found["channels[0].name"].source, found["channels[0].name"].line) == (FILE, 3)
    variable = found["channels[1].priority"]
    assert (variable.value, variable.source, variable.line, variable.variables) == (
        "${PRIORITY}",
        ENVIRONMENT,
        11,
        ("PRIORITY",),
    )
    preset = found["channels[1].api_key"]
    assert (preset.value, preset.source, preset.line, preset.variables, preset.is_secret) == (
        "${OPENAI_API_KEY}",
        ENVIRONMENT,
        0,
        ("OPENAI_API_KEY",),
        True,
    )
    address = found["channels[1].base_url"]
    assert (address.value, address.source) == ("https://api.openai.com/v1", DEFAULT)
    assert (found["tasks.ttl"].value, found["tasks.ttl"].source) == ("7d", DEFAULT)
    assert found["channels[0].timeout.first_byte"].value == "60"
    assert "tls.key" not in found


def test_a_written_dollar_is_no_reference() -> None:
    text = f"channels: [{{name: a, protocols: [sandbox], models: [m]}}]\nsecret: '$${{{S}-0123456789}}'\n"
    _, found = read(text)
    assert S not in found["secret"].value
    assert found["secret"].source is FILE


def test_the_built_in_config_has_settings_of_every_section() -> None:
    _, found = read(BUILT_IN, {})
    assert {"channels[0].name", "retries.budget", "alerts.rules.budget.thresholds"} <= found.keys()
    assert found["alerts.rules.budget.thresholds"].value == "50, 80, 100"


@pytest.mark.parametrize("secret", ["", "a", "a" * 19])
def test_a_short_secret_is_masked_whole(secret: str) -> None:
    assert masked(secret) == "••••"


PUBLIC_NAMES = re.compile(
    r"keys$|keys\.max_stale|key_labels|cache_key|quirks|sessions|input_tokens|output_tokens|reasoning_tokens"
    r"|cached_tokens|least_tokens|tokenizer|token_file|tls\.key|auth: \{kind|stream_headers_after"
)
"""Keys that are no secrets although their names contain words for secrets: files, numbers, patterns."""


def test_every_key_whose_name_is_that_of_a_secret_is_masked() -> None:
    """A new key with a name of this kind fails here until it is in `SECRET_KEYS` or among the public ones."""
    plain = {re.sub(r"\[\]|\.ID\b|: \{kind: \w+\}", "", key.path): key.path for key in all_keys()}
    named = {name: path for name, path in plain.items() if re.search("key|secret|password|token|headers|command", name)}
    assert {"channels.api_key", "secret"} <= named.keys()
    unmasked = {path for name, path in named.items() if name not in SECRET_KEYS}
    assert {path for path in unmasked if not PUBLIC_NAMES.search(path)} == set()
    assert plain.keys() >= SECRET_KEYS | ORIGIN_KEYS
