"""Properties of providers' protocols that a config needs, so that reading it imports no codec: their type, and the rows
of the text formats. Rows of other operations are with those operations.
"""

import re
from dataclasses import dataclass

from umg_grpc.wire.core.provider_key_headers import DEFAULT_KEY_HEADER, MESSAGES_KEY_HEADER, NATIVE_KEY_HEADER
from umg_grpc.wire.provider_model_lists import ANTHROPIC_LIST, GEMINI_LIST, OPENAI_LIST, ProviderModelList

MODEL_PATH = re.compile(r"/models(?:/[^/]+)?$")  # end of the URL of a call whose path names the model
INVOKE_PATH = re.compile(r"/model(?:/[^/]+(?:/invoke)?)?$")  # end of the URL of a call of InvokeModel


@dataclass(frozen=True, kw_only=True)
class ProviderProtocol:
    """Properties of a provider's protocol that a config needs."""

    other_names: tuple[str, ...] = ()  # in lower case, as operators write them in a config
    key_header: str = DEFAULT_KEY_HEADER
    call_path: re.Pattern[str] | None = None
    """End of the URL of a call, which operators may append to a `base_url` by mistake; None if it is unknown."""
    model_list: ProviderModelList | None = None  # None for providers without one
    has_input_limit: bool = False
    """Whether the protocol's providers limit the inputs of one request, so that a channel may set `max_inputs`."""
    has_callers: bool = True
    """Whether callers of the gateway use the protocol, too, so that their requests may pass unchanged."""


@dataclass(frozen=True, kw_only=True)
class TextProtocol(ProviderProtocol):
    """Protocol of a text format."""

    codec: str  # `TextProviderFormat` as `module:name`, for `pkgutil.resolve_name`
    has_cache_marks: bool = False
    """Whether requests of the format mark the parts that a provider should cache (`cache_control`)."""
    stores_prompts: bool = False
    """Whether providers of the format may store prompt prefixes for a price (`cachedContents`)."""
    needs_cache_marks: bool = False  # whether all providers cache only marked parts of a prompt


TEXT_PROTOCOLS = {
    "chat": TextProtocol(
        codec="umg_grpc.wire.chat:CHAT_FORMAT",
        other_names=("chat_completions", "chat-completions", "completions"),
        call_path=re.compile(r"/(?:chat/)?completions$"),
        model_list=OPENAI_LIST,
        has_cache_marks=True,
    ),
    "responses": TextProtocol(
        codec="umg_grpc.wire.responses:RESPONSES_FORMAT", call_path=re.compile(r"/responses$"), model_list=OPENAI_LIST
    ),
    "messages": TextProtocol(
        codec="umg_grpc.wire.messages:MESSAGES_FORMAT",
        other_names=("claude",),
        key_header=MESSAGES_KEY_HEADER,
        call_path=re.compile(r"/messages$"),
        model_list=ANTHROPIC_LIST,
        has_cache_marks=True,
        needs_cache_marks=True,
    ),
    "native": TextProtocol(
        codec="umg_grpc.wire.native:NATIVE_FORMAT",
        other_names=("generatecontent", "google"),
        key_header=NATIVE_KEY_HEADER,
        call_path=MODEL_PATH,
        model_list=GEMINI_LIST,
        stores_prompts=True,
    ),
    "converse": TextProtocol(
        codec="umg_grpc.wire.converse:CONVERSE_FORMAT",
        other_names=("bedrock_converse", "bedrock-converse"),
        call_path=re.compile(r"/model/[^/]+/converse(?:-stream)?$"),
        has_cache_marks=True,
        has_callers=False,
    ),
}
"""Name of a text format -> its properties."""


def has_cache_marks(protocol: str) -> bool:
    """Return whether requests mark the parts to cache (`cache_control`). False for protocols of no text format."""
    return protocol in TEXT_PROTOCOLS and TEXT_PROTOCOLS[protocol].has_cache_marks


def stores_prompts(protocol: str) -> bool:
    """Return whether providers may store prompt prefixes. False for protocols that are no text format."""
    return protocol in TEXT_PROTOCOLS and TEXT_PROTOCOLS[protocol].stores_prompts


def needs_cache_marks(protocol: str) -> bool:
    """Return whether all providers of this protocol cache only marked parts of a prompt."""
    return protocol in TEXT_PROTOCOLS and TEXT_PROTOCOLS[protocol].needs_cache_marks
