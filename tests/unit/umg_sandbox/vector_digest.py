"""Digest of simulated vectors, which every process makes equal."""

import hashlib

from tests.unit.upstream.vectors import SECONDS, embed_request, loaded_engine
from umg_sandbox.embedding_channel import SandboxEmbedding


async def digest() -> str:
    """Return the SHA-256 of the simulated vectors of two texts."""
    engine = loaded_engine()
    try:
        prepared = SandboxEmbedding(engine).prepare(embed_request("A cat", "a dog"), "text-embedding-3-small")
        answer = await prepared.send(SECONDS)
    finally:
        await engine.aclose()
    return hashlib.sha256(answer.SerializeToString(deterministic=True)).hexdigest()
