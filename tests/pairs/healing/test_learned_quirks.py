"""Learned quirks: bounded, for a day, shared by the database, shown and forgotten by commands."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.pairs.healing.refusing_vendor import channels
from tests.pairs.healing.test_safety import Vendor, calls
from umg_grpc.cli import model_route_explanation
from umg_grpc.cli.text_tables import Form
from umg_grpc.config import parse
from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.routing import Router, Target
from umg_grpc.service.resilience.learned_quirk_sharing import LearnedQuirkTable
from umg_grpc.service.resilience.learned_quirks import LIFETIME_SECONDS, MAX_LEARNED, LearnedQuirks
from umg_grpc.store import open_store
from umg_grpc.wire.errors.rejection_adaptation import Mended

TEMPERATURE = Mended("temperature", "", Quirks(rejects=frozenset({"temperature"})), lasting=True)
LIMIT = Mended("max_tokens", "> 4096", Quirks(max_output_tokens=4096, renames={"max_tokens": "max_completion_tokens"}), lasting=True)  # fmt: skip


def target(model: str = "chat-1", *, settings: str = "") -> Target:
    config = parse(channels("http://127.0.0.1:1", settings=settings), "umg.yaml", {})
    return Router(config).targets(model)[0]


@dataclass
class Clock:
    seconds: float = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


def test_restrictions_are_applied_to_translated_requests_and_to_the_providers_own_format() -> None:
    learned, served = LearnedQuirks(), target()
    learned.learn(served, "chat", [TEMPERATURE, LIMIT])
    quirks = learned.applied(served)
    for source_format in ("chat", "messages"):
        applied = quirks.of("chat", source_format)
        assert applied.rejects is not None
        assert applied.rejects >= {"temperature"}
        assert (applied.max_output_tokens, applied.renames) == (4096, {"max_tokens": "max_completion_tokens"})


def test_a_restriction_ends_after_a_day() -> None:
    clock = Clock()
    learned, served = LearnedQuirks(clock), target()
    learned.learn(served, "chat", [TEMPERATURE])
    assert learned.applied(served) is not served.quirks
    clock.seconds += LIFETIME_SECONDS + 1
    assert learned.applied(served).of("chat", "chat").rejects is None
    assert learned.of("chat", "chat-1") == []


def test_the_number_of_restrictions_is_bounded() -> None:
    clock = Clock()
    learned = LearnedQuirks(clock)
    router = Router(parse(channels("http://127.0.0.1:1"), "umg.yaml", {}))
    for number in range(MAX_LEARNED + 10):
        clock.seconds += 1
        learned.learn(router.targets(f"chat-{number}")[0], "chat", [TEMPERATURE])
    assert len(learned.all()) == MAX_LEARNED
    assert learned.all()[0].model == "chat-10"


def test_a_restriction_of_one_call_is_not_learned() -> None:
    learned = LearnedQuirks()
    learned.learn(target(), "chat", [TEMPERATURE._replace(lasting=False)])
    assert learned.all() == []


def test_a_channel_that_does_not_heal_applies_nothing() -> None:
    learned = LearnedQuirks()
    learned.learn(target(), "chat", [TEMPERATURE])
    silent = target(settings=", heal: false")
    assert learned.applied(silent) is silent.quirks


def test_the_line_for_the_config_is_valid() -> None:
    learned = LearnedQuirks()
    learned.learn(target(), "chat", [LIMIT])
    line = learned.all()[0].line()
    text = channels("http://127.0.0.1:1").replace("models: ['chat-*']", f"models: ['chat-*'], {line}")
    written = Router(parse(text, "umg.yaml", {})).targets("chat-1")[0].quirks.written
    assert (written.max_output_tokens, written.renames) == (4096, {"max_tokens": "max_completion_tokens"})


async def test_other_processes_apply_and_forget_a_restriction(tmp_path: Path) -> None:
    store = await open_store("sqlite", tmp_path)
    first, second = LearnedQuirks(), LearnedQuirks()
    tables = [LearnedQuirkTable(store, first), LearnedQuirkTable(store, second)]
    try:
        for table in tables:
            table.start()
        first.learn(target(), "chat", [TEMPERATURE, LIMIT])
        assert await tables[0].flushed()
        for table in tables:
            await table.load()
        assert second.all() == first.all()
        assert [each.member for each in await tables[1].forget("chat-1")] == ["temperature", "max_tokens"]
        for table in tables:
            await table.load()
        assert first.all() == second.all() == []
    finally:
        for table in tables:
            await table.aclose()
        await store.aclose()


async def test_a_gateway_learns_for_the_next_one_until_an_operator_forgets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with calls(tmp_path, Vendor()) as made:
        assert await made.chat(temperature=0.2) == (200, 2, "temperature")
    async with calls(tmp_path, Vendor()) as made:
        assert await made.chat(temperature=0.2) == (200, 1, "temperature")
    config = parse(channels("http://127.0.0.1:1"), "umg.yaml", {})
    await model_route_explanation.explain(config, tmp_path, "chat-1", "", "", {}, Form.TABLE)
    assert 'learned from a refusal: chat-1 at chat (chat), temperature: quirks: {"rejects":["temperature"]}' in (
        capsys.readouterr().out
    )
    await model_route_explanation.forget(config, tmp_path, "chat-1")
    assert capsys.readouterr().out.startswith("forgotten: chat-1 at chat (chat), temperature")
    await model_route_explanation.forget(config, tmp_path, "chat-1")
    assert capsys.readouterr().out == "nothing was learned from refusals of chat-1\n"
    async with calls(tmp_path, Vendor()) as made:
        assert await made.chat(temperature=0.2) == (200, 2, "temperature")
