"""Other spellings of paths, which clients build from the base URL of another server."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BaseSegment:
    """Segment in front of an operation's paths in the base URLs of other servers. A client with that base URL, or whose
    SDK adds the segment, calls a path of this gateway with the segment in front.
    """

    name: str
    source: str


BASE_SEGMENTS = (
    BaseSegment("v1", "SDKs of openai and anthropic: the base URL of the one has it, the other appends it"),
    BaseSegment("v1beta", "google-genai appends it to a base URL that may have it"),
    BaseSegment("v1alpha", "google-genai sends it with http_options={'api_version': 'v1alpha'}, for preview features"),
    BaseSegment("v2", "cohere appends it to a base URL that may end with /v1"),
    BaseSegment("openai", "ai.google.dev/gemini-api/docs/openai: /v1beta/openai; console.groq.com/docs: /openai/v1"),
    BaseSegment("anthropic", "api-docs.deepseek.com/guides/anthropic_api: /anthropic, with the SDK's /v1/messages"),
    BaseSegment("api", "openrouter.ai/docs: /api/v1; docs.z.ai: /api/anthropic"),
)
API_VERSIONS = frozenset({"v1", "v1beta", "v2"})
"""Base segments that are also versions of this gateway's paths; the last one of a path is its version."""


def canonical_path(path: str) -> str:
    """Return the path that a client with another server's base URL means; "" if it is `path` itself. That URL has no
    version, another one or two, base segments of the other server, or an additional slash. The result begins with a
    version, so that paths of administration or of the process have no second spelling.
    """
    segments, version = [segment for segment in path.split("/") if segment], "v1"
    names = {row.name for row in BASE_SEGMENTS}
    count = next((at for at, segment in enumerate(segments) if segment not in names), len(segments))
    if count and segments[count - 1] in API_VERSIONS:
        version = segments[count - 1]
    slash = [""] if path.endswith("/") else []
    meant = "/".join(("", version, *segments[count:], *slash))
    return "" if meant == path else meant
