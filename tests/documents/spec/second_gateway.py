"""Second gateway in front of the one that the tests of the specification call: `UMG_SPEC_CHAIN=1` or `make chain`."""

import os
from collections.abc import Mapping

from tests.support.gateways import KEY
from umg_grpc.config import parse

IS_CHAINED = bool(os.environ.get("UMG_SPEC_CHAIN"))
FRONT = """\
channels:
{channels}
models:
  wordllama-256: {{created: 2024-07-01, display_name: WordLlama, owned_by: the label of its provider}}
"""
PROTOCOLS = {
    "sandbox": "chat, responses, messages, native",
    "vectors": "embeddings, native_embeddings, rerank",
    "images": "umg_images, native, chat",
    "videos": "umg_video",
    "local": "embeddings, rerank",
}
"""Channel of the gateway behind -> protocols by which the gateway in front calls its models."""
LOCAL = "the gateway in front counts the tokens itself, without the checks of the one behind"
OFF = "the native protocol has no word for reasoning that is off of models with levels"
STORED = "the gateway in front stores no responses that its provider stores, and its provider knows no keys of callers"
PROMPT = "the unified entry of the gateway behind requires a prompt, which the caller's entry does not"
PLACE = "the error of the provider names the place in its own request, of which the caller gets the member"
EXCEPTIONS: Mapping[str, str] = {
    "test_count_field_messages_has_the_shape_of_messages": LOCAL,
    "test_embeddings_texts_above_the_models_length_are_refused": PLACE,
    "test_rerank_limits_are_reported": PLACE,
    "test_responses_field_input_items_of_unknown_types_are_refused_by_name": PLACE,
    "test_events_2_chat_chunks": "chunks with null usage are passed on, as the vendor sends them",
    "test_a_broken_stream_ends_with_an_error_event": "the stream fails before its first event, so that the status says it",
    "test_models_field_owned_by_is_the_providers_label": "the label is that of the channel of the gateway in front",
    "test_suffix_nothinking_turns_thinking_off": OFF,
    "test_readings_10_suffixes_work_in_every_format": OFF,
    "test_readings_12_the_search_tool_is_never_a_tool_call": "the simulated model that searches beside functions is behind",
    "test_stored_get_returns_a_streamed_response": STORED,
    "test_stored_delete": STORED,
    "test_stored_unknown_ids_are_not_found": STORED,
    "test_stored_another_callers_key_finds_nothing": STORED,
    "test_stored_store_false_is_not_stored": STORED,
    "test_videos_video_object_fields": PROMPT,
    "test_videos_entry_f_fields": PROMPT,
}
"""Tests of which two gateways cannot be as one -> the reason. Each must fail: an exception that holds is deleted."""


def front_config(behind: str, url: str) -> str:
    """Return the config of a gateway in front of the one at `url`, whose config is `behind`."""
    channels = [
        f"- {{name: {channel.name}, protocols: [{PROTOCOLS[channel.name]}], shared_objects: true, api_key: {KEY},\n"
        f"   base_url: '{url}', models: [{', '.join(model.id for model in channel.models)}]}}"
        for channel in parse(behind, "test.yaml", {}).channels
    ]
    return FRONT.format(channels="\n".join(channels))
