"""Selection of a response's shape, where one body cannot satisfy both the specification and the official SDKs."""

from collections.abc import Mapping

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.unary_format_interface import ClientShape

SHAPE_HEADER = "x-umg-shape"
_STAINLESS = "x-stainless-"
# found anywhere in it: `AsyncOpenAI/Python 2.1`, `ai/7.0 ai-sdk/cohere/5.0`, `ai-sdk-cohere/4.0`
_AGENTS = ("openai/", "ai-sdk")
_COHERE = "cohere"
SDK_NAME = "x-fern-sdk-name"
"""Header with the name of an SDK of several vendors. Those of Cohere: `cohere`, `cohere-ai`, `com.cohere.fern:api-sdk`,
`github.com/cohere-ai/cohere-go/v2`.
"""


def client_shape(headers: Mapping[str, str]) -> ClientShape:
    """Return the shape of responses that the caller expects: by `x-umg-shape`, else SDK if other headers show an SDK.

    Recognised SDKs are openai's and SDKs generated like it, the AI SDK, and cohere's in all its languages. Header names
    must be in lower case, or `headers` case-insensitive. Raise UmgError(INVALID_FIELD) for an unknown shape.
    """
    requested = headers.get(SHAPE_HEADER)
    if requested is None:
        return ClientShape.SDK if _is_sdk(headers) else ClientShape.DOCUMENTED
    try:
        return ClientShape(requested)
    except ValueError:
        message = f"{SHAPE_HEADER} must be documented or sdk"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=SHAPE_HEADER) from None


def is_cohere_sdk(headers: Mapping[str, str]) -> bool:
    """Return whether the caller is an SDK of Cohere. `headers`: names in lower case, or a case-insensitive mapping."""
    return _COHERE in headers.get(SDK_NAME, "").lower()


def _is_sdk(headers: Mapping[str, str]) -> bool:
    agent = headers.get("user-agent", "").lower()
    return (
        agent.startswith(_COHERE)
        or any(name in agent for name in _AGENTS)
        or is_cohere_sdk(headers)
        or any(name.lower().startswith(_STAINLESS) for name in headers)
    )
