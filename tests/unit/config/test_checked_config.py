"""Check of converted configs: values that the config file refuses are removed and listed, and the rest loads."""

import pytest

from umg_grpc.config import parse
from umg_grpc.config.importers.config_text_builder import ImportedConfig
from umg_grpc.config.importers.converted_config_check import Variables, checked


def built() -> ImportedConfig:
    made = ImportedConfig("another gateway")
    keys = {"protocols": ["chat"], "base_url": "${HOST}/v1", "api_key": "${KEY}"}
    details = {"weight": -3, "timeout": {"total": 0, "idle": 5}, "headers": {"x-a": "é", "x-b": "1"}}
    first = made.new_channel("first", keys | details)
    for public in ("two words", "bell\x07", "smile", "plain"):
        first.add(public, "😀" if public == "smile" else public)
    made.new_channel("second", {"protocols": ["chat"], "base_url": "ftp://host"}).add("of-second", "m")
    made.new_channel("third", keys).add("other words", "m")
    made.sections = {
        "aliases": {"plain": "smile", "alias": "smile"},
        "redis": "redis://${REDIS_HOST}:${REDIS_PORT}",
        "models": {"smile": {"price": {"input": "-1", "output": "2"}}, "absent": {"price": {"input": "1"}}},
    }
    return made


def test_refused_values_are_removed_and_listed() -> None:
    made = checked(built())
    assert set(made.lost) == {
        "aliases.plain: expected a name of its own; there is a model of this id",
        "headers.x-a of channel `first`: expected printable ASCII on one line",
        "model `two words`: expected a model id: up to 256 characters without spaces, at most one of them `*`",
        "model `bell\x07`: expected a model id: up to 256 characters without spaces, at most one of them `*`",
        "timeout.total of channel `first`: expected a number > 0.0",
        "weight of channel `first`: expected a whole number >= 0",
        "model `of-second`: base_url: expected a URL, http:// or https:// with a host and without a query",
        "model `other words`: expected a model id: up to 256 characters without spaces, at most one of them `*`",
        "models.absent: expected the id of a model that some channel serves",
        "models.smile.price.input: expected a number such as 1.25, the credits that a million of them cost,"
        " with at most 6 decimals",
    }


def test_a_model_of_several_channels_is_listed_with_its_channel() -> None:
    made = ImportedConfig("another gateway")
    for name, base in (("a", "https://a.example"), ("b", "ftp://b.example")):
        made.new_channel(name, {"protocols": ["chat"], "base_url": base}).add("m", "m")
    (note,) = checked(made).lost
    assert note.startswith("model `m` of channel `b`: base_url: expected a URL")


def test_the_rest_loads_where_each_variable_has_a_value_of_its_kind() -> None:
    made = checked(built())
    config = parse(made.text(), "umg.yaml", Variables(made))
    (channel,) = config.channels
    assert [(model.id, model.upstream) for model in channel.models] == [("smile", "😀"), ("plain", "plain")]
    assert (channel.weight, channel.timeout.idle, dict(channel.headers)) == (1, 5, {"x-b": "1"})
    assert (dict(config.aliases), config.redis) == ({"alias": "smile"}, "redis://us-east-1:6379")
    assert [price.micro_credits_per_million for price in config.models["smile"].described.prices] == [2_000_000]


def test_a_config_of_which_nothing_is_left_is_refused_with_the_list() -> None:
    made = ImportedConfig("another gateway")
    made.new_channel("a", {"protocols": ["chat"], "base_url": "https://a"}).add("two words", "m")
    with pytest.raises(ValueError, match=r"not converted:\n- model `two words`: expected a model id"):
        checked(made)
