"""The matrix: today's models x faces x features. Each feature is kept, or named where the vendor lacks it."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.pairs.vendors import calls, report, sources
from tests.pairs.vendors.features import FACES, TEXT_FEATURES
from tests.pairs.vendors.gateway import Model, Sent
from tests.pairs.vendors.runner import Result, embedding_matrix, embedding_models, judged, matrix, models
from tests.world.sdk.runner import installed_or_skipped
from umg_grpc.knowledge.dropped_field_losses import FIELD_LOSSES

CALLS = Path(__file__).parent / "cases" / "calls.jsonl"
MAX_REFUSED = 0.02
"""Most of all calls that the gateway may refuse."""
PLACE = re.compile(r"[:.\[]")
LEAST_MODELS, LEAST_FEATURES = 60, 25


@pytest.fixture(scope="module", autouse=True)
def sources_installed() -> None:
    """Skip the tests where the cost map or the walked SDK cannot be downloaded."""
    installed_or_skipped(sources.cost_map)
    installed_or_skipped(sources.installed)


@pytest.fixture(scope="module")
def outcomes() -> list[Result]:
    """Return all outcomes of the matrix."""
    return [*matrix(models()), *embedding_matrix(embedding_models())]


def test_each_feature_is_kept_or_named_at_each_model(outcomes: list[Result]) -> None:
    wrong = report.failures(result for result in outcomes if result.wrong)
    assert wrong == "", f"{report.table(outcomes)}\n{wrong}"


def test_few_calls_are_refused_and_only_for_fields_whose_loss_is_refused(outcomes: list[Result]) -> None:
    refused = [result for result in outcomes if result.outcome == "refused"]
    assert len(refused) <= MAX_REFUSED * len(outcomes)
    fields = {PLACE.split(result.message)[0] for result in refused if result.face in FACES}
    assert fields <= {field for field, row in FIELD_LOSSES.items() if row.loss == "refuse"}


def test_the_matrix_has_the_models_and_features_of_today() -> None:
    assert len(models()) >= LEAST_MODELS
    assert len(TEXT_FEATURES) >= LEAST_FEATURES
    assert all(any(face in feature.requests for feature in TEXT_FEATURES.values()) for face in FACES)


def test_recorded_calls_that_failed_are_right() -> None:
    assert report.failures(calls.results(CALLS)) == ""


@dataclass(frozen=True)
class Wrong:
    """Request to a vendor that is not right, and the reason that the runner gives."""

    id: str
    vendor: str
    model: str
    feature: str
    protocol: str
    body: dict[str, object]
    reason: str
    dropped: tuple[str, ...] = ()


HELLO: dict[str, object] = {"model": "m", "messages": [{"role": "user", "content": "Say ok."}]}
WRONG = [
    Wrong("a refusal", "mistral", "codestral-2508", "seed", "chat", HELLO | {"seed": 42}, "mistral.unknown-member"),
    Wrong("a loss in silence", "openai", "gpt-4o", "seed", "chat", HELLO, "lost, the vendor can do it"),
    Wrong("a named loss", "openai", "gpt-4o", "seed", "chat", HELLO, "lost, the vendor can do it (named)", ("seed",)),
    Wrong("an unnamed loss", "xai", "grok-4.7", "penalties", "chat", HELLO, "left out without a word"),
    Wrong(
        "an effort without effect",
        *("moonshot", "kimi-k2.6", "effort-none", "chat"),
        HELLO | {"reasoning_effort": "none"},
        "lost, the vendor can do it",
    ),
    Wrong(
        "a prefill that is not the last turn",
        *("mistral", "codestral-2508", "prefill", "chat"),
        {
            "model": "m",
            "messages": [{"role": "assistant", "content": "The answer is ("}, {"role": "user", "content": "Go on."}],
        },
        "lost, the vendor can do it",
    ),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
def test_the_runner_finds_requests_that_are_not_right(case: Wrong) -> None:
    sent = Sent(case.protocol, json.dumps(case.body).encode(), {}, dict.fromkeys(case.dropped), "", stops=False)
    found = judged(Model(case.vendor, case.model), "messages", TEXT_FEATURES[case.feature], sent)
    assert found.wrong == case.reason
