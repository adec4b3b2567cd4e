"""Retirements of models, past and announced, and their report to operators."""

from dataclasses import dataclass
from datetime import date

import pytest

from umg_grpc.config import parse
from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.model_retirement_dates import retirement_of
from umg_grpc.knowledge.public_price_rows import UnitPrices
from umg_grpc.process.retired_model_report import retired_models

TODAY = date(2026, 11, 29)


@dataclass(frozen=True)
class Known:
    id: str
    vendor: str
    text: str
    refused: bool = False


KNOWN = [
    Known("sora-2-pro", "openai", "was shut down by its vendor on 2026-09-24", refused=True),
    Known("dall-e-3", "openai", "was shut down by its vendor on 2026-05-12; use gpt-image-2 or later", refused=True),
    Known("gpt-image-1", "openai", "was shut down by its vendor on 2026-10-23; use gpt-image-2 or later", refused=True),
    Known("gpt-image-1.5", "openai", "has its end announced by its vendor for 2026-12-01"),
    Known("chatgpt-image-latest", "openai", "has its end announced by its vendor for 2026-12-01"),
    Known("veo-3.1-generate-001", "vertex", "has its end announced by its vendor for 2026-11-17"),
    Known("gpt-4", "openai", "was shut down by its vendor on 2026-10-23; use gpt-5.4 or later"),
    Known("gpt-5.1", "openai", "has its end announced by its vendor for 2027-04-01; use gpt-6-sol"),
    Known("sora-2", "azure", "has its end announced by its vendor for 2026-11-02"),
    Known("grok-imagine-image-pro", "xai", "has its end announced by its vendor for 2026-05-15"),
]


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: case.id)
def test_the_retirement_of_a_model_is_known(case: Known) -> None:
    found = retirement_of(case.id, case.vendor)
    assert found is not None
    assert (found.text(), found.refuses(TODAY)) == (case.text, case.refused)


@pytest.mark.parametrize(
    ("model", "vendor"), [("sora-2", ""), ("gpt-image-2", "openai"), ("gpt-image-1.5", "openrouter"), ("m", "openai")]
)
def test_no_retirement_is_known_of_current_models_and_at_relays(model: str, vendor: str) -> None:
    assert retirement_of(model, vendor) is None


def test_announced_ends_are_reported_to_operators_in_time() -> None:
    text = "channels: [{provider: openai, models: [gpt-image-1.5, 'dall-e-*', gpt-image-2, 'gpt-*']}]"
    config = parse(text, "umg.yaml", {"OPENAI_API_KEY": "k"})
    assert retired_models(config, TODAY) == [
        "`gpt-image-1.5` of channel openai has its end announced by its vendor for 2026-12-01",
        "`dall-e-*` of channel openai was shut down by its vendor on 2026-05-12; use gpt-image-2 or later",
    ]
    assert not retired_models(config, date(2026, 1, 1))


def test_dates_of_generated_prices_are_dates() -> None:
    rows = [row for row in read_rows("generated_prices", UnitPrices) if row.retired]
    assert rows
    for row in rows:
        date.fromisoformat(row.retired)
