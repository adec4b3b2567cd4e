"""Attributes of the spans and metrics of attempts, by OpenTelemetry's semantic conventions for generative AI (version
0.1 of their own repository).
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

from google.protobuf.message import Message
from yarl import URL

from umg_grpc.config import Channel
from umg_grpc.operations import OPERATIONS_BY_VALUE, ModelOperation
from umg_grpc.operations.canonical_message_unions import CanonicalRequest
from umg_grpc.operations.wire_formats_by_name import upstream_of
from umg_grpc.routing import Target
from umg_grpc.v1 import pb

Attributes: TypeAlias = dict[str, str | int | float | bool | list[str]]

OPERATION_ATTRIBUTE, PROVIDER_ATTRIBUTE, MODEL_ATTRIBUTE = (
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
)
ADDRESS_ATTRIBUTE, PORT_ATTRIBUTE, ERROR_ATTRIBUTE = "server.address", "server.port", "error.type"
OPERATION_NAMES: Mapping[ModelOperation, str] = MappingProxyType(
    {value: row.telemetry.name for value, row in OPERATIONS_BY_VALUE.items() if row.telemetry is not None}
)
"""Operation whose attempts have spans -> its name there."""
PROVIDER_HOSTS: Mapping[str, str] = MappingProxyType(
    {
        "openai.com": "openai",
        "openai.azure.com": "azure.ai.openai",
        "anthropic.com": "anthropic",
        "generativelanguage.googleapis.com": "gcp.gemini",
        "aiplatform.googleapis.com": "gcp.vertex_ai",
        "cohere.com": "cohere",
        "deepseek.com": "deepseek",
        "groq.com": "groq",
        "mistral.ai": "mistral_ai",
        "moonshot.ai": "moonshot_ai",
        "perplexity.ai": "perplexity",
        "x.ai": "x_ai",
    }
)
"""End of the host name of a well-known provider -> its name in the conventions."""
USAGE_ATTRIBUTES = (
    ("gen_ai.usage.input_tokens", "input_tokens"),
    ("gen_ai.usage.output_tokens", "output_tokens"),
    ("gen_ai.usage.cache_read.input_tokens", "cache_read_tokens"),
    ("gen_ai.usage.reasoning.output_tokens", "reasoning_tokens"),
)
"""Pairs of an attribute of a span and the field of `umg.v1.Usage` with its value."""
REQUEST_ATTRIBUTES = (
    ("gen_ai.request.temperature", "temperature"),
    ("gen_ai.request.top_p", "top_p"),
    ("gen_ai.request.max_tokens", "max_output_tokens"),
    ("gen_ai.request.seed", "seed"),
    ("gen_ai.request.presence_penalty", "presence_penalty"),
    ("gen_ai.request.frequency_penalty", "frequency_penalty"),
)
"""Pairs of an attribute of a span and the field of `umg.v1.GenerateRequest` with its value."""


@lru_cache(maxsize=1024)
def provider_of(base_url: str, protocol: str) -> tuple[str, str, int]:
    """Return name, host and port of a channel's provider for telemetry; for a model in this process, the host is "" and
    the port 0. If the host is unknown, the name is derived from `protocol`, as the conventions require.
    """
    url = URL(base_url) if base_url else None
    host = (url.host or "") if url is not None else ""
    name = next((name for end, name in PROVIDER_HOSTS.items() if host == end or host.endswith(f".{end}")), None)
    port = (url.port or 0) if url is not None else 0
    codec = upstream_of(protocol)
    return name or (codec.provider_name if codec is not None else "") or f"umg.{protocol}", host, port


def target_attributes(operation: ModelOperation, target: Target) -> Attributes:
    """Return the attributes that the span and the metrics of an attempt have in common: operation, provider, model."""
    channel: Channel = target.channel
    provider, host, port = provider_of(channel.base_url, channel.protocols[0])
    found: Attributes = {
        OPERATION_ATTRIBUTE: OPERATION_NAMES[operation],
        PROVIDER_ATTRIBUTE: provider,
        MODEL_ATTRIBUTE: target.model,
    }
    if host:
        found[ADDRESS_ATTRIBUTE], found[PORT_ATTRIBUTE] = host, port
    return found


def request_attributes(request: CanonicalRequest, *, stream: bool) -> Attributes:
    """Return the parameters of a request as attributes of its span, without its content."""
    if isinstance(request, pb.EmbedRequest) and request.HasField("dimensions"):
        return {"gen_ai.embeddings.dimension.count": request.dimensions}
    if not isinstance(request, pb.GenerateRequest):
        return {}
    given: Message = request  # whose `HasField` takes any name
    found: Attributes = {name: getattr(given, field) for name, field in REQUEST_ATTRIBUTES if given.HasField(field)}
    if stream:
        found["gen_ai.request.stream"] = True
    if request.HasField("top_k"):
        found["gen_ai.request.top_k"] = int(request.top_k)
    if request.candidate_count > 1:
        found["gen_ai.request.choice.count"] = request.candidate_count
    return found


def usage_attributes(usage: pb.Usage) -> Attributes:
    """Return the token counts of a usage as attributes of a span, without zeros."""
    found: Attributes = {name: count for name, member in USAGE_ATTRIBUTES if (count := getattr(usage, member))}
    if written := usage.cache_write_tokens + usage.long_cache_write_tokens:
        found["gen_ai.usage.cache_write.input_tokens"] = written
    return found


def finish_reason(reason: "pb.FinishReason.ValueType") -> str:
    """Return the name of a finish reason for telemetry, in lower case."""
    return pb.FinishReason.Name(reason).removeprefix("FINISH_REASON_").lower()
