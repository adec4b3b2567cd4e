"""Embedding and reranking by wordllama in this process: static token vectors, 32 000 of 256 numbers each.

`WordLlamaEngine` owns the model and a thread for it; `LocalEmbedding` and `LocalRerank` are channel operations that use
it. The package imports little: the first call imports numpy and wordllama in the engine's thread.
"""

from umg_grpc.upstream.local.wordllama.embedding import LocalEmbedding
from umg_grpc.upstream.local.wordllama.engine import WordLlamaEngine
from umg_grpc.upstream.local.wordllama.reranker import LocalRerank

__all__ = ["LocalEmbedding", "LocalRerank", "WordLlamaEngine"]
