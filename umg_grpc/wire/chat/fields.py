"""What a body may hold where its structs keep the JSON raw."""

from msgspec import Raw, defstruct

from umg_grpc.wire.chat import schema
from umg_grpc.wire.chat.tools import SEARCH_KEYS
from umg_grpc.wire.json import ABSENT
from umg_grpc.wire.unknown import Fields, by_type

_VENDOR_TOOL = defstruct("_VENDOR_TOOL", [(key, Raw, ABSENT) for key in SEARCH_KEYS])

FIELDS = Fields(
    schema.ChatRequest,
    {
        (schema.ChatMessage, "content"): by_type(
            {
                "text": schema.TextPart,
                "image_url": schema.ImagePart,
                "input_audio": schema.AudioPart,
                "refusal": schema.RefusalPart,
            }
        ),
        (schema.ChatMessage, "tool_calls"): by_type(
            {"function": schema.FunctionToolCall, "custom": schema.CustomToolCall}, schema.FunctionToolCall
        ),
        (schema.ChatRequest, "tools"): by_type({"function": schema.FunctionTool, "custom": schema.CustomTool}),
        (schema.VendorG, "tools"): lambda _: _VENDOR_TOOL,
        (schema.ChatRequest, "tool_choice"): by_type(
            {
                "function": schema.ChosenTool,
                "custom": schema.ChosenTool,
                "allowed_tools": schema.AllowedToolsChoice,
            }
        ),
    },
    {
        # beside its id an answer's sound has all this
        schema.AudioReference: ("data", "expires_at", "transcript"),
        schema.ChatMessage: ("annotations",),  # of an answer, where they belong to its text
        schema.FunctionToolCall: ("index",),  # of a streamed call, as clients keep it
        schema.CustomToolCall: ("index",),
        **dict.fromkeys(
            (
                schema.TextPart,
                schema.ImagePart,
                schema.AudioPart,
                schema.RefusalPart,
                schema.FunctionTool,
                schema.CustomTool,
            ),
            ("prompt_cache_breakpoint",),  # of one provider's cache
        ),
    },
)
