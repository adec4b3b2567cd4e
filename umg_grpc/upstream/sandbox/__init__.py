"""A deterministic simulated provider that says so: for tests, and for people without keys.

Text: `SandboxText`, a channel whose answers follow from the prompt alone. What the user's last words hold makes it
misbehave: `[[fail]]` (500), `[[fail:mid]]` (the stream breaks off), `[[fail:429]]`, `[[slow]]`, `[[refuse]]`,
`[[block]]` (the prompt is blocked), `[[redacted]]` (the thoughts are hidden).

Embedding and reranking: `SandboxEmbedding`, `SandboxRerank`, with the meaning that the local model finds.
"""

from umg_grpc.upstream.sandbox.embedding import SandboxEmbedding
from umg_grpc.upstream.sandbox.reranking import SandboxRerank
from umg_grpc.upstream.sandbox.text import SandboxText

__all__ = ["SandboxEmbedding", "SandboxRerank", "SandboxText"]
