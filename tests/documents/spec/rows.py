"""Every row and rule of the text, image and video documents, and the readings of them, with the tests that check them
against the running service. `python -m tests.documents.spec.rows` runs them and prints the number of rows that hold.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.documents.spec.image_rows import IMAGE_ROWS
from tests.documents.spec.video_rows import VIDEO_ROWS

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Row:
    """A row of a table, or a rule."""

    section: str
    text: str  # abbreviated text of the row
    tests: tuple[str, ...]  # names of test functions, each of which belongs to one module of this directory


def _rows(section: str, *rows: tuple[str, ...]) -> list[Row]:
    return [Row(section, text, tests) for text, *tests in rows]  # type: ignore[misc]


OVERVIEW = _rows(
    "What the service does",
    (
        "the caller picks the model by id and the request format by path",
        "test_overview_the_caller_picks_the_model_by_id_and_the_format_by_path",
    ),
    (
        "one JSON body, or an SSE stream when streaming is requested",
        "test_overview_one_json_body_or_a_stream",
        "test_overview_native_streams_by_its_path_not_by_its_body",
    ),
    ("request bodies are JSON", "test_overview_bodies_are_json"),
    ("native generate: POST /v1beta/models/{model}:generateContent", "test_generate_path_model_is_required_and_known"),
    (
        "native streaming generate: POST /v1beta/models/{model}:streamGenerateContent?alt=sse",
        "test_stream_generate_takes_the_same_body_and_answers_with_events",
    ),
    ("chat completions: POST /v1/chat/completions", "test_chat_response_fields"),
    ("responses: POST /v1/responses", "test_responses_object_fields"),
    ("messages: POST /v1/messages", "test_messages_object_fields"),
    ("count message tokens: POST /v1/messages/count_tokens", "test_count_field_messages"),
    (
        "native single embedding: POST /v1beta/models/{model}:embedContent, and under /v1",
        "test_embed_content_response_fields",
        "test_native_embeddings_live_under_both_roots",
    ),
    (
        "native batch embedding: POST /v1beta/models/{model}:batchEmbedContents, and under /v1",
        "test_batch_embed_contents_response",
        "test_native_embeddings_live_under_both_roots",
    ),
    ("embeddings: POST /v1/embeddings", "test_embeddings_response_fields"),
    ("rerank: POST /v1/rerank", "test_rerank_response_fields"),
    ("list models: GET /v1/models", "test_models_response_fields"),
    (
        "a model does what it can, and says what that is",
        "test_embeddings_a_model_of_another_kind_is_refused",
        "test_native_embeddings_refuse_models_of_another_kind",
        "test_rerank_a_model_of_another_kind_is_refused",
        "test_models_exactly_the_listed_models_answer",
    ),
)

RESOURCES = [
    *_rows(
        "Chat message",
        ("role", "test_chat_message_role"),
        ("content: text or array", "test_chat_message_content"),
        ("tool_calls", "test_chat_message_tool_calls"),
        ("tool_call_id", "test_chat_message_tool_call_id"),
        ("name, optional on tool messages", "test_chat_message_name_is_optional_on_tool_messages"),
    ),
    *_rows(
        "Chat completion response",
        ("id, object, created, model", "test_chat_response_fields"),
        ("choices: index, message, finish_reason", "test_chat_response_fields"),
        ("usage", "test_chat_response_usage"),
        ("tool_calls when the model calls tools", "test_chat_response_tool_calls"),
        ("stream deltas: content and reasoning_content", "test_chat_response_stream_deltas"),
    ),
    *_rows(
        "Native content item and part",
        ("role", "test_native_content_role"),
        ("parts", "test_native_content_parts"),
        ("part text", "test_native_part_text"),
        ("part inlineData", "test_native_part_inline_data"),
        ("part fileData", "test_native_part_file_data"),
        ("parts functionCall and functionResponse", "test_native_part_function_call_and_response"),
    ),
    *_rows(
        "Native generation response",
        ("candidates: content, finishReason, index, safetyRatings", "test_native_response_candidates"),
        ("usageMetadata: five counters", "test_native_response_usage_metadata"),
        ("modelVersion", "test_native_response_model_version_and_create_time"),
        ("createTime: ISO 8601", "test_native_response_model_version_and_create_time"),
        ("groundingMetadata when search is on", "test_native_response_grounding_metadata_when_search_is_on"),
    ),
    *_rows(
        "Responses object",
        (
            "id, usable as previous_response_id",
            "test_responses_object_fields",
            "test_responses_field_previous_response_id",
        ),
        ("object, created_at, model", "test_responses_object_fields"),
        ("status", "test_responses_object_fields", "test_responses_object_completed_at"),
        ("output", "test_responses_output_item_message"),
        ("usage and its details", "test_responses_object_fields"),
        ("output item of type message", "test_responses_output_item_message"),
        ("output item of type function_call", "test_responses_output_item_function_call"),
    ),
    *_rows(
        "Messages object",
        ("id, type, role, model", "test_messages_object_fields"),
        ("content: text or tool_use blocks", "test_messages_object_fields", "test_messages_object_tool_use"),
        ("stop_reason", "test_messages_object_fields", "test_messages_object_tool_use"),
        ("stop_sequence", "test_messages_object_fields", "test_messages_field_stop_sequences"),
        ("usage", "test_messages_object_fields"),
        ("token-count response", "test_count_field_messages"),
    ),
    *_rows(
        "Embedding results",
        ("native: embedding.values", "test_embed_content_response_fields"),
        ("native: metadata.usage", "test_embed_content_response_fields", "test_batch_embed_contents_response"),
        ("embeddings: object, data, model", "test_embeddings_response_fields"),
        (
            "embeddings: index, in the order of the input",
            "test_embeddings_field_input_an_array_embeds_several_texts_in_order",
        ),
        ("embeddings: usage", "test_embeddings_response_usage"),
        (
            "embeddings: floats, or base64 when that is asked for",
            "test_embeddings_response_fields",
            "test_embeddings_field_encoding_format_base64_is_the_same_vector",
        ),
    ),
    *_rows(
        "Rerank result",
        ("model", "test_rerank_response_fields"),
        (
            "results, ordered by relevance",
            "test_rerank_response_is_ordered_by_relevance",
            "test_rerank_response_equal_documents_keep_their_order",
        ),
        ("index: position in the input documents", "test_rerank_response_is_ordered_by_relevance"),
        ("relevance_score in 0-1, higher is more relevant", "test_rerank_response_is_ordered_by_relevance"),
        ("document, present only when return_documents is true", "test_rerank_field_return_documents"),
        ("usage.total_tokens", "test_rerank_response_fields"),
    ),
    *_rows(
        "Model object",
        ("object, data", "test_models_response_fields"),
        ("id", "test_models_response_fields", "test_models_exactly_the_listed_models_answer"),
        ("created: time of the model's release", "test_models_field_created_is_the_time_of_release"),
        ("owned_by: the provider's label", "test_models_field_owned_by_is_the_providers_label"),
    ),
    *_rows(
        "States and transitions",
        (
            "in_progress -> completed by response.completed, which has the usage",
            "test_states_in_progress_becomes_completed_with_usage",
        ),
    ),
]

GENERATE = [
    *_rows(
        "generateContent",
        (
            "path parameter model",
            "test_generate_path_model_is_required_and_known",
            "test_generate_path_model_may_be_percent_encoded_or_carry_one_models_prefix",
        ),
        ("contents", "test_generate_field_contents"),
        ("generationConfig", "test_generate_field_generation_config"),
        ("systemInstruction", "test_generate_field_system_instruction"),
        ("safetySettings", "test_generate_field_safety_settings"),
        (
            "tools: functionDeclarations or vendorgSearch",
            "test_generate_field_tools",
            "test_generate_field_tools_of_another_kind_are_refused_by_name",
            "test_generate_field_tools_search_under_every_name",
        ),
        (
            "toolConfig: mode, allowedFunctionNames",
            "test_generate_field_tool_config",
            "test_generate_field_tool_config_out_of_its_values",
        ),
        ("cachedContent", "test_generate_field_cached_content"),
        ("parameters: a JSON-schema object", "test_generate_function_parameters_are_a_json_schema"),
        (
            "rule 1: a functionResponse follows a function call",
            "test_generate_rule_1_a_function_response_follows_a_function_call",
        ),
        ("rule 2: search and functions together", "test_generate_rule_2_search_and_functions_are_accepted_together"),
        ("rule 3: image output as inlineData", "test_generate_rule_3_image_output_is_inline_data"),
    ),
    *_rows(
        "generationConfig",
        ("temperature 0-2", "test_generation_config_temperature"),
        ("topP", "test_generation_config_top_p"),
        ("topK", "test_generation_config_top_k"),
        ("maxOutputTokens", "test_generation_config_max_output_tokens"),
        ("stopSequences", "test_generation_config_stop_sequences"),
        ("responseMimeType", "test_generation_config_response_mime_type"),
        ("responseModalities", "test_generation_config_response_modalities"),
        ("thinkingConfig.includeThoughts", "test_generation_config_thinking_config_include_thoughts"),
        (
            "thinkingConfig.thinkingBudget (tier with budgets)",
            "test_generation_config_thinking_config_thinking_budget",
            "test_generation_config_thinking_config_thinking_budget_is_for_the_tier_with_budgets",
        ),
        (
            "thinkingConfig.thinkingLevel LOW or HIGH (tier with levels)",
            "test_generation_config_thinking_config_thinking_level",
            "test_generation_config_thinking_config_thinking_level_is_for_the_tier_with_levels",
        ),
        ("imageConfig", "test_generation_config_image_config"),
        ("suffix -thinking", "test_suffix_thinking_turns_thinking_on"),
        (
            "suffix -thinking-<budget>",
            "test_suffix_thinking_with_a_budget_bounds_thinking",
            "test_suffix_thinking_with_a_budget_is_refused_on_the_tier_with_levels",
        ),
        ("suffix -nothinking", "test_suffix_nothinking_turns_thinking_off"),
        ("suffixes -thinking-low and -thinking-high", "test_suffix_thinking_low_and_high_set_the_level"),
        (
            "no other suffix, and no other family",
            "test_suffix_that_is_none_of_the_five_makes_an_unknown_model",
            "test_suffix_is_for_family_fam_g_only",
        ),
    ),
    *_rows(
        "streamGenerateContent",
        (
            "same body, SSE with fragments of candidates[].content.parts",
            "test_stream_generate_takes_the_same_body_and_answers_with_events",
            "test_stream_generate_sends_function_calls_whole",
            "test_stream_generate_sends_reasoning_before_the_answer",
            "test_stream_generate_refuses_as_json",
        ),
        ("without alt=sse: a JSON array", "test_stream_generate_without_alt_sse_is_one_json_array"),
    ),
]

CHAT = _rows(
    "chat/completions",
    ("model", "test_chat_field_model"),
    ("messages", "test_chat_field_messages"),
    ("temperature 0-2", "test_chat_field_temperature"),
    ("stream", "test_chat_field_stream"),
    ("max_tokens", "test_chat_field_max_tokens"),
    ("top_p 0-1", "test_chat_field_top_p"),
    ("tools", "test_chat_field_tools", "test_readings_6_an_unknown_type_is_refused_and_named"),
    ("tool_choice", "test_chat_field_tool_choice"),
    ("response_format", "test_chat_field_response_format"),
    (
        "thinking (the family that supports it)",
        "test_chat_field_thinking",
        "test_chat_field_thinking_is_for_the_family_that_supports_it",
    ),
    (
        "enable_thinking (famQ)",
        "test_chat_field_enable_thinking",
        "test_chat_field_enable_thinking_is_for_family_fam_q",
    ),
    ("parameters (famQ)", "test_chat_field_parameters", "test_chat_field_parameters_is_for_family_fam_q"),
    ("vendorn_thinking_to_content", "test_chat_field_vendorn_thinking_to_content"),
    (
        "extra_body.vendorg.thinking_config",
        "test_chat_field_extra_body_thinking_config",
        "test_chat_field_extra_body_is_an_object",
    ),
    ("extra_body.vendorg.tools", "test_chat_field_extra_body_tools_pass_a_search_tool_through"),
    (
        "generationConfig.thinkingConfig.thinkingLevel (tier with levels)",
        "test_chat_field_generation_config",
        "test_chat_field_generation_config_is_for_the_tier_with_levels",
    ),
    (
        "reasoning_effort: 20, 50, 80 % of the budget",
        "test_chat_field_reasoning_effort",
        "test_chat_field_reasoning_effort_is_a_share_of_the_budget",
    ),
    ("web_search_options", "test_chat_field_web_search_options"),
    (
        "search_parameters (famX)",
        "test_chat_field_search_parameters",
        "test_chat_field_search_parameters_is_for_family_fam_x",
    ),
    (
        "fields that are not in the table",
        "test_chat_unknown_fields_are_refused_by_name_where_they_cannot_go",
        "test_chat_fields_that_change_no_answer_are_reported_by_name",
        "test_chat_unknown_null_fields_are_absent",
    ),
    (
        "rule 1: tool use is two-stage; stage 2 may be streamed; a failed tool returns its error as content",
        "test_chat_rule_1_tool_use_is_two_stage",
        "test_chat_rule_1_stage_1_may_be_streamed",
        "test_chat_rule_1_stage_2_may_be_streamed",
        "test_chat_rule_1_two_named_tools_are_two_parallel_calls",
    ),
    (
        "rule 2: famQ extensions only inside parameters",
        "test_chat_rule_2_famq_extensions_are_refused_at_top_level",
        "test_chat_rule_2_a_null_famq_extension_at_top_level_is_none",
        "test_chat_rule_2_the_default_temperature_is_not_forced_on_famq",
    ),
    (
        "rule 3: famQ, enable_thinking without a stream is off",
        "test_chat_rule_3_enable_thinking_is_off_without_a_stream",
        "test_chat_rule_3_enable_thinking_is_on_in_a_stream",
    ),
    ("rule 4: form of the reasoning output", "test_chat_rule_4_reasoning_is_sent_as_reasoning_content"),
    (
        "rule 5: suffixes of famG",
        "test_chat_rule_5_suffix_thinking",
        "test_chat_rule_5_suffix_thinking_with_a_budget",
        "test_chat_rule_5_suffix_nothinking",
        "test_chat_rule_5_suffix_thinking_low_and_high",
        "test_chat_rule_5_any_other_suffix_is_an_unknown_model",
    ),
    ("rule 5: thinking_budget -1, 0, > 0", "test_chat_rule_5_thinking_budget_special_values"),
    (
        "rule 5: reasoning_effort only with the -thinking suffix",
        "test_chat_rule_5_reasoning_effort_needs_the_suffix",
        "test_chat_rule_5_reasoning_effort_works_with_the_suffix",
    ),
    ("rule 5: reasoning_effort only without max_tokens", "test_chat_rule_5_reasoning_effort_needs_no_max_tokens"),
    (
        "rule 5: reasoning is visible in streams only",
        "test_chat_rule_5_reasoning_is_visible_in_streams_only",
        "test_chat_rule_5_include_thoughts_shows_nothing_without_a_budget",
    ),
    (
        "rule 5: a tool named vendorgSearch requests search",
        "test_chat_rule_5_search_is_a_tool_named_vendorg_search",
    ),
    (
        "rule 6: famC does not search by web_search_options alone",
        "test_chat_rule_6_famc_refuses_web_search_options_alone",
    ),
    ("rule 6: famC searches by a tool call, the option beside it", "test_chat_rule_6_famc_searches_by_a_tool_call"),
    (
        "rule 7: structured output with low temperature and max_tokens",
        "test_chat_rule_7_structured_output_with_a_low_temperature_and_max_tokens",
    ),
    ("rule 8: files are sent via /v1/responses", "test_chat_rule_8_files_are_sent_to_responses"),
)

RESPONSES = _rows(
    "responses",
    ("query api-version", "test_responses_query_api_version_is_accepted"),
    ("model", "test_responses_field_model"),
    ("input: array", "test_responses_field_input"),
    ("input: {role, content}", "test_responses_field_input_role_and_content"),
    (
        "input: input_text, input_image, input_file",
        "test_responses_field_input_text_image_and_file",
        "test_responses_field_input_parts_of_wrong_types",
        "test_responses_field_input_items_of_unknown_types_are_refused_by_name",
        "test_responses_field_input_annotations_of_wrong_types",
    ),
    ("instructions", "test_responses_field_instructions"),
    ("max_output_tokens", "test_responses_field_max_output_tokens"),
    ("stream", "test_responses_field_stream"),
    ("temperature 0-2, default 1.0", "test_responses_field_temperature"),
    ("top_p 0-1, default 0.98", "test_responses_field_top_p"),
    (
        "reasoning.effort, default medium",
        "test_responses_field_reasoning_effort",
        "test_responses_field_reasoning_defaults_to_medium",
    ),
    ("reasoning.summary", "test_responses_field_reasoning_summary"),
    (
        "tools: web_search_preview, search_context_size default medium",
        "test_responses_field_tools_web_search_preview",
        "test_responses_field_tools_search_context_size_defaults_to_medium",
    ),
    ("tools: file_search", "test_responses_field_tools_file_search"),
    ("tools: function", "test_responses_field_tools_function", "test_responses_field_tools_of_wrong_types"),
    ("tool_choice, default auto", "test_responses_field_tool_choice"),
    ("parallel_tool_calls, default true", "test_responses_field_parallel_tool_calls"),
    ("max_tool_calls", "test_responses_field_max_tool_calls"),
    (
        "previous_response_id",
        "test_responses_field_previous_response_id",
        "test_stored_conversations_branch",
        "test_stored_a_streamed_response_is_continued",
        "test_stored_continues_on_a_model_of_another_family",
        "test_stored_a_call_is_answered_in_a_continuation",
        "test_stored_usage_counts_the_whole_context",
        "test_stored_unknown_ids_are_not_found",
    ),
    ("truncation, default disabled", "test_responses_field_truncation"),
    ("metadata", "test_responses_field_metadata"),
    ("user", "test_responses_field_user"),
    (
        "rule 1: a function call is an output item",
        "test_responses_rule_1_a_function_call_is_an_output_item",
        "test_responses_stream_of_a_function_call",
    ),
    (
        "rule 2: web search and reasoning for capable families",
        "test_responses_rule_2_web_search_and_reasoning_work_for_a_capable_family",
    ),
    (
        "rule 3: the full plain text is in response.output_text.done",
        "test_responses_rule_3_the_done_event_has_the_full_text",
    ),
    (
        "rule 4: a file by URL is an input_file",
        "test_responses_rule_4_a_file_by_url_is_an_input_file",
        "test_responses_rule_4_a_file_in_base64_as_sdks_send_it",
    ),
)

STORED = _rows(
    "stored responses (readings, 13; issue; reference 2.7)",
    (
        "GET /v1/responses/{id}",
        "test_stored_get_returns_the_response",
        "test_stored_get_returns_a_streamed_response",
        "test_responses_stream_replays_by_get",
    ),
    ("GET /v1/responses/{id}/input_items", "test_stored_input_items"),
    ("DELETE /v1/responses/{id}", "test_stored_delete"),
    ("POST /v1/responses/{id}/cancel", "test_stored_cancel_is_for_responses_under_way"),
    ("POST /v1/responses/input_tokens", "test_responses_input_tokens_counts_without_a_call"),
    ("another caller's key: 404", "test_stored_another_callers_key_finds_nothing"),
    (
        "store false",
        "test_stored_store_false_is_not_stored",
        "test_stored_store_false_may_continue_a_stored_response",
        "test_stored_answers_do_not_differ_from_those_not_stored",
    ),
    ("instructions are not inherited", "test_stored_instructions_are_not_inherited"),
    ("kept for their time", "test_stored_responses_expire_after_their_lifetime"),
    ("nothing is kept where the operator says so", "test_stored_nothing_where_the_operator_disables_storage"),
    ("kept across restarts", "test_stored_responses_survive_a_restart"),
)

MESSAGES = _rows(
    "messages",
    ("model", "test_messages_field_model"),
    (
        "messages: role and content",
        "test_messages_field_messages",
        "test_messages_field_messages_role",
        "test_messages_field_messages_content",
    ),
    ("messages: image blocks", "test_messages_block_image"),
    ("messages: tool_use and tool_result blocks", "test_messages_block_tool_use_and_tool_result"),
    ("max_tokens, required, > 0", "test_messages_field_max_tokens"),
    ("system: string or array", "test_messages_field_system"),
    ("temperature 0-1", "test_messages_field_temperature"),
    ("top_p 0-1", "test_messages_field_top_p"),
    ("top_k", "test_messages_field_top_k"),
    ("stream", "test_messages_field_stream"),
    ("stop_sequences", "test_messages_field_stop_sequences"),
    (
        "tools: function tool",
        "test_messages_field_tools_function",
        "test_messages_field_tools_of_other_kinds_are_refused_by_name",
    ),
    ("tools: web search tool", "test_messages_field_tools_web_search"),
    (
        "tool_choice",
        "test_messages_field_tool_choice",
        "test_messages_field_tool_choice_disable_parallel_tool_use",
    ),
    ("thinking", "test_messages_field_thinking"),
    ("thinking.budget_tokens > 1024", "test_messages_field_thinking_budget_tokens"),
    ("metadata", "test_messages_field_metadata"),
    ("mcp_servers", "test_messages_field_mcp_servers"),
    ("context_management", "test_messages_field_context_management"),
    ("cache_control: ephemeral or persistent, in three places", "test_messages_field_cache_control"),
    (
        "rule 1: thinking as recommended, visible in streams",
        "test_messages_rule_1_extended_thinking_as_recommended",
    ),
    ("rule 2: tool use is two-stage", "test_messages_rule_2_tool_use_is_two_stage"),
    (
        "rule 3: the web search tool's type and name",
        "test_messages_rule_3_web_search_is_exactly_the_documented_pair",
    ),
    ("rule 3: answers include source citations", "test_messages_rule_3_web_search_answers_have_citations"),
    (
        "rule 4: the last marked block is cached",
        "test_messages_rule_4_a_marked_block_is_cached_and_read",
        "test_messages_rule_4_the_last_marked_block_is_cached",
        "test_messages_rule_4_the_mark_of_the_whole_request_caches_all",
        "test_messages_rule_4_without_a_mark_nothing_is_cached",
        "test_messages_rule_4_persistent_is_kept_for_an_hour",
    ),
    (
        "rule 4: minimum sizes 1024 and 2048",
        "test_limits_prompt_cache_minimum_sizes",
    ),
    (
        "rule 4: cache reads are told apart, in every format",
        "test_messages_rule_4_other_formats_show_cached_tokens",
        "test_messages_rule_4_streams_report_the_same_usage",
    ),
    ("rule 5: fields that are not shown", "test_messages_rule_5_fields_that_are_not_shown_are_accepted"),
)

COUNT = _rows(
    "count_tokens",
    ("model", "test_count_field_model"),
    ("messages", "test_count_field_messages", "test_count_field_messages_has_the_shape_of_messages"),
    ("system", "test_count_field_system"),
    ("tools", "test_count_field_tools"),
    ("no model call", "test_count_rule_no_model_is_called"),
    ("no quota", "test_count_rule_no_quota_is_consumed"),
    ("output parameters are not counted", "test_count_rule_output_parameters_are_not_counted"),
    ("each image about 1000", "test_count_rule_each_image_is_about_1000"),
    ("as SDKs call it", "test_count_takes_the_sdks_query_and_key"),
    ("native :countTokens", "test_count_native_count_tokens"),
    ("/v1/responses/input_tokens", "test_count_responses_input_tokens"),
)

EMBEDDINGS = [
    *_rows(
        "embeddings",
        (
            "model: the documented ones, with their dimensions",
            "test_embeddings_field_model",
            "test_embeddings_response_has_vectors_of_the_documented_length",
        ),
        (
            "input: string or array of strings",
            "test_embeddings_field_input",
            "test_embeddings_field_input_an_array_embeds_several_texts_in_order",
        ),
        ("input of tokens, as SDKs send it", "test_embeddings_field_input_of_tokens_as_sdks_send_it"),
        (
            "encoding_format: float (default) or base64",
            "test_embeddings_field_encoding_format",
            "test_embeddings_field_encoding_format_base64_is_the_same_vector",
        ),
        (
            "dimensions, only for models that support it",
            "test_embeddings_field_dimensions",
            "test_embeddings_field_dimensions_only_of_models_that_support_it",
        ),
        ("user, and fields that are not in the table", "test_embeddings_fields_of_sdks_are_accepted"),
        (
            "how much one call may hold",
            "test_embeddings_batches_up_to_the_vendors_limit",
            "test_embeddings_texts_above_the_models_length_are_refused",
        ),
    ),
    *_rows(
        "embedContent",
        ("content: parts of {text}", "test_embed_content_field_content", "test_embed_content_field_content_parts"),
        (
            "content: at least one text that is not empty",
            "test_embed_content_field_content_needs_one_text_that_is_not_empty",
        ),
        ("content as SDKs send it", "test_embed_content_field_content_may_have_a_role"),
        (
            "outputDimensionality, only for models that support it",
            "test_embed_content_field_output_dimensionality",
            "test_embed_content_field_output_dimensionality_only_of_models_that_support_it",
        ),
        ("taskType", "test_embed_content_field_task_type"),
        ("title, as SDKs send it", "test_embed_content_field_title"),
        (
            "the model comes from the path",
            "test_embed_content_the_model_comes_from_the_path",
            "test_embed_content_response_has_the_documented_length",
        ),
        ("the body must not carry another model", "test_embed_content_the_body_must_not_name_another_model"),
        ("fields that are not in the table", "test_native_embeddings_unknown_fields_are_reported"),
    ),
    *_rows(
        "batchEmbedContents",
        ("requests: array", "test_batch_embed_contents_field_requests"),
        (
            "each item has the shape of a single embedding body",
            "test_batch_embed_contents_items_have_the_shape_of_a_single_body",
        ),
        ("an item must not carry another model", "test_batch_embed_contents_items_must_not_name_another_model"),
        (
            "response: one vector a request, in order",
            "test_batch_embed_contents_gives_one_vector_a_request_in_order",
            "test_batch_embed_contents_is_not_bounded_by_one_vendors_hundred",
        ),
    ),
]

RERANK = _rows(
    "rerank",
    ("model", "test_rerank_field_model"),
    ("query", "test_rerank_field_query"),
    (
        "documents: strings to rank",
        "test_rerank_field_documents",
        "test_rerank_field_documents_may_be_objects_as_sdks_send_them",
    ),
    ("top_n, default all", "test_rerank_field_top_n"),
    (
        "return_documents, default false",
        "test_rerank_field_return_documents",
        "test_rerank_documents_have_the_form_that_sdks_read",
    ),
    ("fields that are not in the table", "test_rerank_fields_of_sdks_are_accepted"),
    ("how much one call may hold", "test_rerank_limits_are_reported"),
    ("POST /v2/rerank, as SDKs call it", "test_rerank_v2_answers_as_its_sdks_read_it"),
)

MODELS = _rows(
    "GET /v1/models",
    ("no body", "test_models_no_body_and_unknown_queries_are_ignored"),
    ("depends on the permissions of the key", "test_models_depend_on_the_permissions_of_the_key"),
    (
        "three formats, chosen by request headers",
        "test_models_the_shape_is_chosen_by_headers",
        "test_models_all_shapes_list_the_same_models",
    ),
    (
        "one shaped like the messages convention",
        "test_models_messages_shape_fields",
        "test_models_messages_shape_pages",
    ),
    ("one shaped like the native convention", "test_models_native_shape_fields", "test_models_native_shape_pages"),
    ("GET /v1beta/models, as SDKs call it", "test_models_the_native_list_is_under_v1beta_regardless_of_headers"),
    ("GET /v1/models/{id}, as SDKs call it", "test_models_one_model_is_an_element_of_the_list"),
    ("clients cache it for about one hour", "test_models_may_be_cached_for_an_hour_by_their_caller"),
)

AUTHENTICATION = _rows(
    "Authentication",
    (
        "1: every operation requires credentials",
        "test_authentication_1_every_operation_requires_credentials",
    ),
    ("2: Authorization: Bearer", "test_authentication_2_bearer_is_the_primary_method"),
    (
        "3: x-vendorg-api-key on native paths, nowhere else",
        "test_authentication_3_a_key_header_counts_on_its_own_paths_only",
    ),
    (
        "3: ?key= on native paths, nowhere else",
        "test_authentication_3_a_key_in_the_query_counts_on_native_paths_only",
        "test_authentication_3_the_key_in_the_query_goes_with_others",
    ),
    (
        "4: a missing or invalid key is 401",
        "test_authentication_4_a_wrong_key_is_401",
        "test_authentication_4_a_wrong_key_comes_before_a_wrong_body",
    ),
    (
        "5: keys are scoped, expire and are revoked",
        "test_authentication_5_expired_and_revoked_keys_are_401",
        "test_authentication_5_a_keys_scope_is_its_models",
    ),
)

EVENTS = _rows(
    "Events",
    (
        "1: native lines",
        "test_events_1_native_lines_are_json_with_parts",
        "test_readings_7_native_answers_have_all_counters_and_ratings",
    ),
    (
        "2: chat chunks with deltas",
        "test_events_2_chat_chunks",
        "test_events_2_chat_usage_is_a_last_chunk_when_requested",
        "test_chat_response_stream_deltas",
    ),
    (
        "3: responses events, named as their types",
        "test_events_3_responses_event_names_equal_their_types",
        "test_events_3_the_order_of_a_text",
        "test_events_3_an_answer_cut_by_its_limit_is_incomplete",
    ),
    ("3: response.created", "test_events_3_response_created"),
    ("3: response.in_progress", "test_states_in_progress_becomes_completed_with_usage"),
    ("3: response.output_item.added", "test_events_3_response_output_item_added"),
    ("3: response.output_text.delta", "test_events_3_response_output_text_delta"),
    ("3: response.output_text.done", "test_responses_rule_3_the_done_event_has_the_full_text"),
    ("3: response.output_item.done", "test_events_3_response_output_item_done"),
    ("3: response.completed", "test_events_3_response_completed"),
    (
        "4: messages content_block_delta with thinking or text",
        "test_events_4_messages_deltas_are_thinking_or_text",
        "test_events_4_messages_blocks_are_opened_and_closed_in_order",
    ),
    ("streams reach their clients unbuffered", "test_events_streams_are_not_cached_or_buffered"),
)

ERRORS = _rows(
    "Errors",
    (
        "a JSON schema with a malformed keyword",
        "test_chat_names_a_malformed_keyword",
        "test_responses_names_a_malformed_keyword",
        "test_messages_names_a_malformed_keyword",
        "test_native_names_the_schema",
    ),
    ("native body", "test_errors_native_missing_contents", "test_errors_status_400"),
    ("messages body; a missing field", "test_errors_messages_missing_field_is_a_validation_message"),
    ("token-count body", "test_count_errors_have_the_body_of_this_operation"),
    (
        "model-list body",
        "test_models_error_body",
        "test_models_error_body_of_the_native_path_is_native",
    ),
    ("bodies of the embedding operations", "test_embedding_errors_have_their_formats_bodies"),
    ("body of rerank", "test_rerank_errors_have_the_formats_body"),
    (
        "400 invalid request parameters",
        "test_errors_status_400",
        "test_errors_of_a_malformed_body",
        "test_errors_no_change_of_a_good_body_is_a_server_error",
        "test_embedding_no_change_of_a_good_body_is_a_server_error",
        "test_rerank_no_change_of_a_good_body_is_a_server_error",
        "test_errors_status_400_for_a_parameter_that_the_model_does_not_support",
    ),
    ("401 authentication failed", "test_errors_status_401"),
    (
        "404 model does not exist or path wrong",
        "test_errors_status_404_for_an_unknown_model",
        "test_errors_status_404_of_a_wrong_path",
    ),
    (
        "429 rate limited",
        "test_errors_status_429_when_a_key_calls_too_often",
        "test_errors_status_429_of_a_provider",
    ),
    (
        "500 server error",
        "test_errors_status_500_class_of_a_provider",
        "test_errors_status_500_class_of_a_slow_provider",
    ),
    ("a wrong method", "test_errors_of_a_wrong_method"),
    ("in the middle of a chat stream", "test_errors_in_a_stream_of_chat"),
    (
        "in the middle of a responses stream",
        "test_errors_in_a_stream_of_responses",
        "test_errors_in_a_stream_of_responses_are_not_stored",
    ),
    ("in the middle of a messages stream", "test_errors_in_a_stream_of_messages"),
    (
        "in the middle of a native stream",
        "test_errors_in_a_stream_of_native",
        "test_errors_in_a_stream_of_native_as_an_array",
    ),
)

LIMITS = [
    *_rows(
        "Limits",
        (
            "temperature",
            "test_generation_config_temperature",
            "test_chat_field_temperature",
            "test_responses_field_temperature",
            "test_messages_field_temperature",
        ),
        (
            "top_p",
            "test_generation_config_top_p",
            "test_chat_field_top_p",
            "test_responses_field_top_p",
            "test_messages_field_top_p",
        ),
        ("messages max_tokens", "test_messages_field_max_tokens"),
        ("messages thinking.budget_tokens", "test_messages_field_thinking_budget_tokens"),
        ("prompt cache minimum size", "test_limits_prompt_cache_minimum_sizes"),
        (
            "prompt cache lifetime",
            "test_messages_rule_4_a_marked_block_is_cached_and_read",
            "test_messages_rule_4_persistent_is_kept_for_an_hour",
        ),
        ("web search max_uses", "test_messages_field_tools_web_search"),
        ("image token estimate", "test_count_rule_each_image_is_about_1000"),
    ),
    *_rows(
        "Versioning",
        (
            "native generation under /v1beta (and /v1, as SDKs call it)",
            "test_versioning_native_generation_is_under_both_roots",
        ),
        ("native embedding under /v1beta and /v1", "test_native_embeddings_live_under_both_roots"),
        ("the others under /v1", "test_versioning_other_operations_live_under_v1_only"),
        ("api-version is a dated label", "test_responses_query_api_version_is_accepted"),
        ("versions are in the model id", "test_native_response_model_version_and_create_time"),
        ("unknown query parameters are ignored", "test_versioning_unknown_query_parameters_are_ignored"),
    ),
]

READINGS = _rows(
    "Readings",
    (
        "1: out of range, set or type is a 400 naming the field",
        "test_readings_1_values_of_current_sdk_types",
        "test_readings_1_values_are_never_clamped_or_ignored",
    ),
    ("2: credentials", "test_authentication_3_a_key_header_counts_on_its_own_paths_only"),
    ("3: error bodies", "test_errors_status_400", "test_errors_status_401", "test_errors_status_404_of_a_wrong_path"),
    (
        "4: unknown model, refused streams, failures of a provider",
        "test_errors_status_404_for_an_unknown_model",
        "test_stream_generate_refuses_as_json",
        "test_errors_status_500_class_of_a_provider",
        "test_errors_status_429_of_a_provider",
    ),
    (
        "5: every model in every format; streams hold the text of whole responses",
        "test_readings_5_every_model_answers_in_every_format",
    ),
    (
        "5: every embedding model in both embedding formats",
        "test_embedding_models_answer_in_both_formats_alike",
    ),
    (
        "6: unknown blocks, items, tools",
        "test_readings_6_an_unknown_type_is_refused_and_named",
        "test_readings_6_an_unknown_type_reaches_a_provider_of_its_own_format",
    ),
    (
        "6: mcp_servers and context_management",
        "test_readings_6_mcp_servers_pass_in_their_own_format_only",
        "test_messages_field_context_management",
    ),
    ("7: totals", "test_readings_7_totals"),
    ("7: native counters, ratings and parts", "test_readings_7_native_answers_have_all_counters_and_ratings"),
    ("8: thinking of famR", "test_readings_8_famr_thinks_before_its_text"),
    ("8: budgets are never exceeded", "test_readings_8_thinking_never_exceeds_its_budget"),
    (
        "9: famQ",
        "test_chat_rule_2_famq_extensions_are_refused_at_top_level",
        "test_chat_rule_3_enable_thinking_is_off_without_a_stream",
    ),
    (
        "10: famG: suffixes, budgets, efforts",
        "test_readings_10_suffixes_work_in_every_format",
        "test_readings_10_the_answer_has_the_requested_id",
        "test_chat_rule_5_reasoning_effort_needs_the_suffix",
    ),
    (
        "10: an id configured as it stands wins",
        "test_readings_10_a_configured_id_takes_precedence_over_a_suffix",
    ),
    ("11: thinking inside the content", "test_readings_11_the_content_has_the_reasoning_verbatim"),
    (
        "12: search",
        "test_readings_12_the_search_tool_is_never_a_tool_call",
        "test_readings_12_search_means_citations_in_every_format",
    ),
    (
        "13: the response object",
        "test_readings_13_the_response_object_has_every_field_of_the_sdk_type",
    ),
    ("13: background", "test_readings_13_background_is_refused_by_name"),
    ("13: bare items form one turn", "test_responses_field_input_text_image_and_file"),
    (
        "14: messages",
        "test_readings_14_a_tool_turn_keeps_its_thinking",
        "test_readings_14_streams_carry_the_usage_of_the_whole",
        "test_messages_field_messages_role",
    ),
    (
        "15: count_tokens",
        "test_count_rule_each_image_is_about_1000",
        "test_count_rule_output_parameters_are_not_counted",
    ),
    (
        "16: a model in a native embedding body",
        "test_embed_content_the_body_must_not_name_another_model",
        "test_batch_embed_contents_items_must_not_name_another_model",
    ),
    ("16: dimensions 0 is 400", "test_embeddings_field_dimensions"),
    (
        "16: a batch gives one vector a request in order",
        "test_batch_embed_contents_gives_one_vector_a_request_in_order",
    ),
    ("16: base64 is 4 bytes a dimension", "test_embeddings_field_encoding_format_base64_is_the_same_vector"),
    ("16: rerank: document is absent unless asked for", "test_rerank_field_return_documents"),
    ("16: rerank: top_n above the count returns all", "test_rerank_field_top_n"),
)

ROWS = [
    *OVERVIEW,
    *RESOURCES,
    *GENERATE,
    *CHAT,
    *RESPONSES,
    *STORED,
    *MESSAGES,
    *COUNT,
    *EMBEDDINGS,
    *RERANK,
    *MODELS,
    *AUTHENTICATION,
    *EVENTS,
    *ERRORS,
    *LIMITS,
    *READINGS,
    *(row for table in (IMAGE_ROWS, VIDEO_ROWS) for section, rows in table.items() for row in _rows(section, *rows)),
]


class _Outcomes:
    """A plugin of pytest that records the test functions that passed in all their cases."""

    def __init__(self) -> None:
        self.held: dict[str, bool] = {}
        self.cases = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            name = report.nodeid.rpartition("::")[2].partition("[")[0]
            self.held[name] = self.held.get(name, True) and report.passed
            self.cases += report.when == "call"


def main() -> int:
    """Run the tests, and print the number of rows and the number that hold. Return 1 if any row does not."""
    outcomes = _Outcomes()
    pytest.main(["-q", "--no-header", "--tb=no", "--show-capture=no", str(HERE)], plugins=[outcomes])
    failed = [row for row in ROWS if not all(outcomes.held.get(test, False) for test in row.tests)]
    for row in failed:
        sys.stdout.write(f"failed: {row.section}: {row.text}\n")
    held = len(ROWS) - len(failed)
    sys.stdout.write(f"rows {len(ROWS)}, passed {held} ({len(outcomes.held)} tests in {outcomes.cases} cases)\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
