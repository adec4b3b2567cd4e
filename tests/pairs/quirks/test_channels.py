"""Quirks of a channel's models: those of the channel, those of the model in the config, and those of the built-in
table.
"""

from dataclasses import asdict, dataclass
from typing import Any

import pytest

from umg_grpc.config import parse
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.routing import Router, Target

CONFIG = """\
channels:
  - name: main
    protocols: [{protocols}]
    base_url: https://provider.example/v1
    api_key: k
    models: [{models}]
{channel}models:
  served: {options}
"""


def target(
    model: str = "served", protocols: str = "chat", channel: str = "", options: str = "{}", requested: str = "served"
) -> Target:
    """Return the channel as a target for a model."""
    lines = f"    {channel}\n" if channel else ""
    text = CONFIG.format(protocols=protocols, models=model, channel=lines, options=options)
    [found] = Router(parse(text, "umg.yaml", {})).channels(requested)
    return found


@dataclass(frozen=True)
class Case:
    """A model of a channel, and its quirks in the first of the channel's formats."""

    id: str
    target: Target
    quirks: dict[str, Any]


RENAMED = "{id: served, upstream: gpt-4o}"
CASES = [
    Case("known by the provider's id", target(RENAMED), {"max_output_tokens": 16_384, "reasoning": False}),
    Case(
        "an alias of another model",
        target("served, {id: claude-3-5-haiku, upstream: gpt-5}", requested="claude-3-5-haiku"),
        {"max_output_tokens": 128_000, "reasoning": None},
    ),
    Case(
        "a longer answer in the config",
        target(RENAMED, options="{capabilities: {output_tokens: 20000}}"),
        {"max_output_tokens": 20_000, "reasoning": False},
    ),
    Case(
        "capabilities that name a control of reasoning",
        target(RENAMED, options="{capabilities: {reasoning: level, search: true}}"),
        {"reasoning": True, "web_search": True, "max_output_tokens": 16_384},
    ),
    Case(
        "capabilities that name none",
        target("{id: served, upstream: our-own}", options="{capabilities: {tools: true}}"),
        {"reasoning": False, "web_search": False},
    ),
    Case(
        "a limit alone does not change reasoning",
        target("{id: served, upstream: our-own}", options="{capabilities: {output_tokens: 500}}"),
        {"reasoning": None, "max_output_tokens": 500},
    ),
    Case(
        "the catalogue, by the public id",
        target("served, {id: famC-sonnet-4-5, upstream: our-own}", protocols="messages", requested="famC-sonnet-4-5"),
        {"max_output_tokens": 64_000},
    ),
    Case(
        "the catalogue, by the provider's id",
        target("{id: served, upstream: famG-2.5-pro}", protocols="native"),
        {"max_output_tokens": 65_536, "search_with_functions": "drop"},
    ),
    Case(
        "the config before the table",
        target(
            RENAMED,
            channel="quirks: {reasoning: true, max_output_tokens: 9, web_search: false}",
            options="{capabilities: {output_tokens: 20000, search: true}}",
        ),
        {"reasoning": True, "max_output_tokens": 9, "web_search": False, "max_user_characters": 64},
    ),
    Case(
        "a family that the operator names",
        target("{id: served, upstream: our-own, family: famQ}"),
        {"reasoning_content": True, "web_search": False},
    ),
    Case("marks for the prompt cache", target(protocols="messages, chat"), {"cache_marks": True}),
    Case("no marks", target(protocols="messages", channel="prompt_caching: off"), {"cache_marks": False}),
    Case("no marks in chat", target(), {"cache_marks": None}),
    Case(
        "by a pattern",
        target('served, {id: "vendor/*", upstream: "*"}', requested="vendor/gpt-4.1"),
        {"max_output_tokens": 32_768},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_model_of_a_channel_has_its_quirks(case: Case) -> None:
    quirks = asdict(case.target.quirks.of(case.target.channel.protocols[0], "another format"))
    assert {name: quirks[name] for name in case.quirks} == case.quirks


def test_same_format_calls_get_only_the_configured_quirks() -> None:
    plain = target(RENAMED, options="{capabilities: {output_tokens: 5}}")
    assert plain.quirks.of("chat", "chat") == NO_QUIRKS
    written = target(RENAMED, channel="quirks: {max_user_characters: 128}")
    assert written.quirks.of("chat", "chat") == Quirks(max_user_characters=128)


def test_each_format_of_a_channel_has_its_own_quirks() -> None:
    both = target("{id: served, upstream: famG-2.5-pro}", protocols="native, chat").quirks
    assert (both.of("native", "messages").web_search, both.of("chat", "messages").web_search) == (None, True)
    assert (both.of("native", "").max_user_characters, both.of("chat", "").max_user_characters) == (None, 64)


def test_local_and_simulated_models_have_no_quirks() -> None:
    text = "channels:\n- {name: a, protocols: [local], models: [m]}\n- {name: b, protocols: [sandbox], models: [m]}\n"
    for found in Router(parse(text, "umg.yaml", {})).channels("m"):
        assert found.quirks.of("chat", "messages") == NO_QUIRKS


def test_reasoning_is_restored_for_providers_that_accept_it() -> None:
    assert [
        target(f"{{id: served, upstream: {model}}}").quirks.accepts_reasoning("chat") for model in ("gpt-5", "famR-1")
    ] == [
        False,
        True,
    ]
    assert target(protocols="messages").quirks.accepts_reasoning("messages")
