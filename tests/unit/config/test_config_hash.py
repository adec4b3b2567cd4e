"""Hash of a config: the same for the same settings, without any secret."""

from dataclasses import dataclass

import pytest

from umg_grpc.config import parse
from umg_grpc.config.config_hash import config_hash

TEXT = """
secret: 0123456789abcdef
database: postgresql://user:pass-word@db/umg
metrics: {key: key-of-the-scraper}
aliases: {a: m, b: m}
unpriced: {input: 1, output: 2}
channels:
- {name: main, protocols: [chat], base_url: https://api.example/v1, api_key: sk-1, models: [m, n]}
"""


def hash_of(text: str) -> str:
    return config_hash(parse(text, "umg.yaml", {}))


def test_the_same_settings_have_the_same_hash() -> None:
    assert hash_of(TEXT) == hash_of(TEXT.replace("{a: m, b: m}", "{b: m, a: m}"))


@dataclass(frozen=True)
class Change:
    id: str
    old: str
    new: str


SECRETS = [
    Change("the signing secret", "0123456789abcdef", "fedcba9876543210"),
    Change("the password of the database", "pass-word", "another"),
    Change("the key of the metrics", "key-of-the-scraper", "another-key-of-the-scraper"),
    Change("the key of a channel", "sk-1", "sk-2"),
]
SETTINGS = [
    Change("a model", "[m, n]", "[m]"),
    Change("the order of models", "[m, n]", "[n, m]"),
    Change("an address", "api.example", "other.example"),
    Change("an alias", "a: m", "a: n"),
    Change("a price", "output: 2", "output: 3"),
    Change("a limit", "channels:", "overload: {calls: 5}\nchannels:"),
]


@pytest.mark.parametrize("case", SECRETS, ids=lambda case: case.id)
def test_secrets_are_no_part_of_the_hash(case: Change) -> None:
    assert hash_of(TEXT.replace(case.old, case.new)) == hash_of(TEXT)


@pytest.mark.parametrize("case", SETTINGS, ids=lambda case: case.id)
def test_each_setting_is_a_part_of_the_hash(case: Change) -> None:
    assert hash_of(TEXT.replace(case.old, case.new)) != hash_of(TEXT)
