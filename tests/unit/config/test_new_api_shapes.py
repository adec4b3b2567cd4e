"""Channels of new-api of any shape: the import writes a file that loads, or its error states the expected form."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from umg_grpc.config import parse
from umg_grpc.config.importers.config_text_builder import ImportedConfig
from umg_grpc.config.importers.converted_config_check import Variables
from umg_grpc.config.importers.from_new_api import from_new_api
from umg_grpc.config.importers.new_api.channel_types import channel_types

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(
        ["${A}", "a|b|c", "a|us-east-1", "[", "{}", '{"a": 1}', '["k", {"a": 1}]', "a\nb", "-1", "\x85", "#"]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
MODELS = st.sampled_from(
    [
        *(
            "gpt-4o",
            "gpt-4o, text-embedding-3-small",
            "claude-opus-4-6-high",
            "gemini-2.5-flash-image",
            "bge-reranker-v2",
        ),
        *("*", "a*b*", "two words", "é", "x" * 300, ",,", "whisper-1", "veo-3.0-generate-001", "kling-v1", "${X}"),
    ]
)
ADDRESSES = st.sampled_from(
    [
        *("https://h.example", "https://api.moonshot.ai/", "glm-coding-plan", "no url", "https://[", "https://h:99999"),
        *("https://h.example/v1/chat/completions", "https://h.example/{model}", "https://h.example/?a=b", "", "${B}"),
    ]
)
MAPPINGS = st.sampled_from(['{"gpt-4o": "b", "b": "gpt-4o"}', '{"gpt-4o": ""}', '{"gpt-4o": ["a"]}', "[1]", "{"])
SETTINGS = st.sampled_from(
    [
        *('{"proxy": "socks5://p:1"}', '{"proxy": "http://p:1"}', '{"proxy": 5}', '{"proxy": "http://["}'),
        *('{"vertex_key_type": "api_key"}', '{"aws_key_type": "api_key"}', "{", "[]", '{"system_prompt": "a"}'),
    ]
)
STATUSES = st.sampled_from([{"0": 2}, {"0": 1, "1": 3}, {"x": 2}, [2], "a"])
ROWS = st.fixed_dictionaries(
    {"type": st.sampled_from([*channel_types(), 28, 999]) | VALUES, "models": MODELS | VALUES},
    optional={
        "name": VALUES,
        "base_url": ADDRESSES | VALUES,
        "key": VALUES,
        "other": VALUES,
        "status": st.sampled_from([1, 2, 3]) | VALUES,
        "model_mapping": MAPPINGS | VALUES,
        "setting": SETTINGS | VALUES,
        "settings": SETTINGS | VALUES,
        "channel_info": st.builds(lambda statuses: {"multi_key_status_list": statuses}, STATUSES) | VALUES,
        "header_override": st.sampled_from(['{"x-a": "b"}', '{"x": "{api_key}"}', '{"a b": "c"}']) | VALUES,
        **dict.fromkeys(("priority", "weight", "group", "tag", "openai_organization", "created_time"), VALUES),
    },
)


def converted(text: str) -> ImportedConfig | None:
    """Return the converted config; None for a text that is refused, with the form that is expected."""
    try:
        return from_new_api(text)
    except ValueError as error:
        if not str(error).startswith("expected "):
            raise
        return None


@settings(deadline=None, max_examples=150)
@given(st.lists(ROWS | VALUES, min_size=1, max_size=4))
def test_channels_of_any_shape_become_a_file_that_loads_or_are_refused(rows: list[Any]) -> None:
    if (made := converted(json.dumps(rows))) is not None:
        channels = parse(made.text(), "umg.yaml", Variables(made)).channels
        assert [channel.name for channel in channels] == [channel.name for channel in made.used_channels]
        parse(made.text(enabled=True), "umg.yaml", Variables(made))


@settings(deadline=None)
@given(VALUES)
def test_json_of_any_shape_is_refused_or_converted(value: Any) -> None:
    converted(json.dumps(value))
