"""Resolution of model ids: exact ids, aliases, suffixes and patterns."""

from dataclasses import dataclass

import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Channel, Config, parse
from umg_grpc.knowledge.families.text_model_rules import Suffix
from umg_grpc.routing import Router, under_name
from umg_grpc.routing.router import MAX_PATTERN_MODELS
from umg_grpc.v1 import pb

EMBED, RERANK = pb.MODEL_OPERATION_EMBED, pb.MODEL_OPERATION_RERANK
FILE = """\
channels:
- {name: exact, protocols: [chat], base_url: http://a, models: [gpt-5, famG-2.5-pro, {id: smart, upstream: gpt-5}]}
- {name: first, protocols: [chat], base_url: http://a, models: ["gpt-*", "*-mini", "*"]}
- {name: second, protocols: [chat], base_url: http://a, models: [{id: "gpt-*", upstream: "openai/gpt-*"}, "gpt-4*", "g*-4o"]}
- {name: vendor, protocols: [chat, embeddings], base_url: http://a, models: [{id: "vendor/*", upstream: "*"}, {id: "any/*", upstream: one}]}
- {name: thinks, protocols: [chat], base_url: http://a, models: ["famG-*", {id: "mine-*", family: famG}]}
aliases:
  fast: gpt-5
  new: gpt-6
  pro: famG-2.5-pro
  low: famG-2.5-pro-thinking-low
  gpt-alias: vendor/x
models:
  gpt-6-mini: {owned_by: lab, hedge: 2, cache: 1m}
"""


@pytest.fixture
def router() -> Router:
    return Router(parse(FILE, "test.yaml", {}))


@dataclass(frozen=True)
class Name:
    id: str
    written: str
    model: str
    ways: str
    """Channels, each with the model id at its upstream."""
    suffix: Suffix | None = None
    alias: str = ""


LOW = Suffix("low")
NAMES = [
    Name("an exact id has only the channels that name it so", "gpt-5", "gpt-5", "exact gpt-5"),
    Name("an alias", "fast", "gpt-5", "exact gpt-5", alias="fast"),
    Name("an alias of a model of a pattern", "new", "gpt-6", "first gpt-6, second openai/gpt-6", alias="new"),
    Name("an alias before a pattern", "gpt-alias", "vendor/x", "vendor x", alias="gpt-alias"),
    Name("an alias of a suffix", "low", "famG-2.5-pro", "exact famG-2.5-pro", LOW, "low"),
    Name("a suffix behind an alias", "pro-thinking-low", "famG-2.5-pro", "exact famG-2.5-pro", LOW, "pro"),
    Name("a suffix before a pattern", "famG-2.5-pro-thinking-low", "famG-2.5-pro", "exact famG-2.5-pro", LOW),
    Name("a suffix after a model of a pattern", "famG-3-thinking-low", "famG-3", "thinks famG-3", LOW),
    Name("a suffix behind a pattern's family", "mine-1-thinking-low", "mine-1", "thinks mine-1", LOW),
    Name("a suffix of another family is part of the id", "gpt-5-thinking", "gpt-5-thinking", "first gpt-5-thinking, second openai/gpt-5-thinking"),
    Name("a suffix behind an alias of another family", "fast-thinking", "fast-thinking", "first fast-thinking"),
    Name("a second suffix behind an alias", "low-thinking", "low-thinking", "first low-thinking"),
    Name("all channels of the pattern", "gpt-3", "gpt-3", "first gpt-3, second openai/gpt-3"),
    Name("the longest literal text", "gpt-41", "gpt-41", "second gpt-41"),
    Name("of equal ones the first in the file", "gpt-4o", "gpt-4o", "second gpt-4o"),
    Name("a star in front", "o1-mini", "o1-mini", "first o1-mini"),
    Name("a described id that a pattern serves", "gpt-6-mini", "gpt-6-mini", "first gpt-6-mini"),
    Name("a prefix that the upstream does not know", "vendor/a/b", "vendor/a/b", "vendor a/b"),
    Name("one upstream model by many ids", "any/thing", "any/thing", "vendor one"),
    Name("a star for nothing", "gpt-", "gpt-", "first gpt-, second openai/gpt-"),
    Name("a model of the pattern for all", "GPT-5", "GPT-5", "first GPT-5"),
]  # fmt: skip


@pytest.mark.parametrize("case", NAMES, ids=lambda case: case.id)
def test_an_id_means_one_model(case: Name, router: Router) -> None:
    found = router.resolve(case.written)
    assert (found.model.id, found.suffix, found.alias) == (case.model, case.suffix, case.alias)
    ways = ", ".join(f"{target.channel.name} {target.model}" for target in router.targets(found.model.id))
    assert ways == case.ways
    assert router.resolve(case.written) == found


@pytest.mark.parametrize(
    "model", ["", "*", "gpt-*", "vendor/*", "vendor/", "a b", "gpt-5\n", "gpt-\x00", "g" * 257, "gpt-" + "5" * 253]
)
def test_an_impossible_id_is_unknown_even_with_a_pattern_for_all(model: str, router: Router) -> None:
    for look_up in (router.resolve, router.channels, router.targets):
        with pytest.raises(UmgError) as caught:
            look_up(model)
        assert caught.value.reason == pb.ERROR_REASON_MODEL_NOT_FOUND
    assert not router.shares(model, "chat")


def test_without_a_star_alone_other_ids_are_unknown() -> None:
    router = Router(parse(FILE.replace(', "*"]', "]"), "test.yaml", {}))
    for model in ("GPT-5", "low-thinking", "fast-thinking", "x"):
        with pytest.raises(UmgError):
            router.resolve(model)


def test_patterns_are_not_listed_and_described_models_are(router: Router) -> None:
    for model in ("gpt-7", "famG-9"):
        router.resolve(model)
    assert [model.id for model in router.models()] == ["gpt-5", "famG-2.5-pro", "smart", "gpt-6-mini"]
    assert list(router.aliases()) == ["fast", "new", "pro", "low", "gpt-alias"]


def test_a_model_of_a_pattern_is_described_like_any_other(router: Router) -> None:
    described = router.resolve("gpt-6-mini").model
    assert (described.hedge, described.cache, described.described.owned_by) == (2, 60, "lab")
    plain = router.resolve("vendor/text-embedding-3-small").model
    assert (plain.hedge, plain.cache, plain.described.owned_by) == (None, None, "vendor")
    assert list(plain.described.operations) == [EMBED]  # the catalogue has it by the upstream's model id
    assert router.resolve("famG-3-pro").rules.levels


def test_an_alias_is_described_under_its_own_name(router: Router) -> None:
    found = router.resolve("fast")
    model_described = under_name(found.model, "fast")
    assert (model_described.id, model_described.display_name, model_described.owned_by) == ("fast", "fast", "exact")
    assert (found.model.described.id, found.model.described.display_name) == ("gpt-5", "gpt-5")


def test_an_operation_that_no_channel_of_the_pattern_supports_is_refused(router: Router) -> None:
    router.reachable("vendor/x", EMBED)
    with pytest.raises(UmgError) as caught:
        router.reachable("vendor/x", RERANK)
    assert caught.value.reason == pb.ERROR_REASON_UNSUPPORTED_FIELD


def test_the_ids_of_a_pattern_take_turns_together(router: Router) -> None:
    first_channels = [router.channels(f"gpt-{number}x")[0].channel.name for number in (2, 3, 5, 6)]
    assert first_channels == ["first", "second"] * 2


def test_a_flood_of_ids_is_forgotten_but_for_the_last(router: Router) -> None:
    kept = router.resolve("gpt-7")
    for number in range(3 * MAX_PATTERN_MODELS):
        router.resolve(f"flood-{number}")
        assert router.resolve("gpt-7") is kept  # it is in constant use
    assert router.resolve(f"flood-{number}") is router.resolve(f"flood-{number}")
    assert len(router._pattern_models) == MAX_PATTERN_MODELS
    assert router.resolve("flood-0").model.id == "flood-0"


def test_an_alias_of_a_missing_model_does_not_exist() -> None:
    """Resolve an alias whose model no channel has. The config rejects that; but channels that cannot run on this
    machine are left out later.
    """
    router = Router(Config(channels=(Channel(name="a", protocols=("chat",), models=()),), aliases={"fast": "gone"}))
    assert not router.aliases()
    with pytest.raises(UmgError):
        router.resolve("fast")
