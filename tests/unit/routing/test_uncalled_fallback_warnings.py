"""Warnings about fallbacks that have no operation in common with the model that fails."""

from dataclasses import dataclass

import pytest

from umg_grpc.config import parse
from umg_grpc.routing import Router, uncalled_fallbacks

CONFIG = """
channels:
- {name: c, protocols: [sandbox], models: [famO-5, famG-2.5-flash-image, text-embedding-3-small, vendorg-rerank]}
aliases: {vectors: text-embedding-3-small}
fallbacks:
"""
OTHER = "and `famO-5` generate text; name a model for the same calls"


@dataclass(frozen=True)
class Case:
    id: str
    fallbacks: str
    warnings: tuple[str, ...] = ()


CASES = [
    Case("texts for texts", "famO-5: [famG-2.5-flash-image]"),
    Case("texts for texts and images", "famG-2.5-flash-image: [famO-5]"),
    Case("vectors for texts", "famO-5: [text-embedding-3-small]", (f"fallbacks.famO-5: `text-embedding-3-small` can embed texts, {OTHER}",)),
    Case("an alias, for one cause", "famO-5: {context: [vectors]}", (f"fallbacks.famO-5: `vectors` can embed texts, {OTHER}",)),
    Case("one of two", "famO-5: [famG-2.5-flash-image, vendorg-rerank]", (f"fallbacks.famO-5: `vendorg-rerank` can rerank documents, {OTHER}",)),
    Case("a pattern", "'fam*': [text-embedding-3-small]"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_fallback_for_other_calls_is_named(case: Case) -> None:
    config = parse(f"{CONFIG}  {case.fallbacks}\n", "umg.yaml", {})
    assert tuple(uncalled_fallbacks(config.fallbacks, Router(config))) == case.warnings
