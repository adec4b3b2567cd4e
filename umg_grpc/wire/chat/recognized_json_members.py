"""Names of the members that the gateway recognizes in raw objects of a chat body, to report all others as unknown."""

from msgspec import Raw, defstruct

from umg_grpc.wire.chat import schema
from umg_grpc.wire.chat.tools import SEARCH_KEYS
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER
from umg_grpc.wire.core.unknown_field_detection import Fields, by_type

HARMLESS_MEMBERS = frozenset(
    {
        # sampling hints of providers with open weights, which others do not have: the same model answers without them
        *("min_p", "top_a", "typical_p", "tfs_z", "repetition_penalty", "repeat_penalty", "random_seed"),
        # accounting, tracing and caches of other gateways and local servers
        *("usage", "user_id", "session_id", "trace", "cache_prompt", "keep_alive", "id_slot"),
        # behaviour of gateways and streams, without effect on the content of the response
        *("drop_params", "allowed_openai_params", "include_reasoning", "tool_stream", "stream_tool_calls"),
        # provider selection and prompt truncation of another gateway: this one has its own routing
        *("provider", "route", "models", "transforms"),
        "input",  # of a body that was written for two paths at once
        "vl_high_resolution_images",  # image resolution for the models of one vendor, like `detail`
    }
)
"""Top-level fields without a canonical form or an effect on the response. Translations report them as left out."""

_VENDOR_TOOL = defstruct("_VENDOR_TOOL", [(key, Raw, ABSENT_MEMBER) for key in SEARCH_KEYS])

RAW_FIELDS = Fields(
    schema.ChatRequest,
    {
        (schema.ChatMessage, "content"): by_type(
            {
                "text": schema.TextPart,
                "image_url": schema.ImagePart,
                "input_audio": schema.AudioPart,
                "file": schema.FilePart,
                "refusal": schema.RefusalPart,
            }
        ),
        (schema.ChatMessage, "tool_calls"): by_type(
            {"function": schema.FunctionToolCall, "custom": schema.CustomToolCall}, schema.FunctionToolCall
        ),
        (schema.ChatRequest, "tools"): by_type({"function": schema.FunctionTool, "custom": schema.CustomTool}),
        (schema.VendorG, "tools"): lambda _: _VENDOR_TOOL,
        (schema.ChatRequest, "tool_choice"): by_type(
            {"function": schema.ChosenTool, "custom": schema.ChosenTool, "allowed_tools": schema.AllowedToolsChoice}
        ),
    },
    {
        # members that the `audio` of a response has beside its id
        schema.AudioReference: ("data", "expires_at", "transcript"),
        schema.ChatMessage: ("annotations",),  # from a response, where they belong to its text
        schema.FunctionToolCall: ("index",),  # of a streamed call, as clients keep it
        schema.CustomToolCall: ("index",),
        **dict.fromkeys(
            (schema.RefusalPart, schema.FunctionTool, schema.CustomTool),
            ("prompt_cache_breakpoint",),  # has no effect there
        ),
    },
)
