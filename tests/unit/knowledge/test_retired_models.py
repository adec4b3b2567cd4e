"""Models that their vendors have shut down: rows, findings in a config, and the error of a call."""

import re
from datetime import date

import pytest

from tests.pairs.vendors.sources import PREFIXES, cost_map
from umg_grpc.config import parse
from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.shut_down_models import RetiredModels, retirement
from umg_grpc.knowledge.vendor_addresses import known_vendors
from umg_grpc.process.retired_model_report import retired_models
from umg_grpc.routing import Router, model_not_found

ROWS = read_rows("retired_models", RetiredModels)
DATE = re.compile(r"20[0-9]{2}-[01][0-9]-[0-3][0-9]")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.models)
def test_a_row_has_a_vendor_a_date_in_the_past_of_its_source_and_the_source(row: RetiredModels) -> None:
    assert row.vendor in known_vendors()
    assert DATE.fullmatch(row.retired)
    assert row.retired < row.as_of
    assert row.source


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.models)
def test_the_cost_map_has_no_other_date_for_a_model_of_a_row(row: RetiredModels) -> None:
    prefix = PREFIXES.get(row.vendor, f"{row.vendor}/")
    ids = [key for key in cost_map() if key.startswith(prefix) and "/" not in key.removeprefix(prefix)]
    dates = {
        cost_map()[key].get("deprecation_date") for key in ids if re.fullmatch(row.models, key.removeprefix(prefix))
    }
    assert dates <= {row.retired}


@pytest.mark.parametrize(
    ("model", "vendor", "day"),
    [
        ("sora-2-pro", "openai", "2026-09-24"),
        ("sora-*", "openai", "2026-09-24"),
        ("sora-2", "azure", None),
        ("gpt-*", "openai", None),
        ("gpt-4o", "openai", None),
        ("o4-mini", "openai", "2026-10-23"),
        ("veo-3.1-generate-preview", "gemini", "2026-10-22"),
        ("veo-3.1-generate-001", "vertex", None),
    ],
)
def test_a_model_is_gone_at_its_own_vendor(model: str, vendor: str, day: str | None) -> None:
    row = retirement(model, vendor)
    assert (row.retired if row is not None else None) == day


def test_a_config_with_a_retired_model_of_its_vendor_has_a_finding() -> None:
    config = parse(
        "channels:\n- {provider: openai, models: [gpt-5.4, {id: clip, upstream: sora-2}]}\n"
        "- {name: relay, protocols: [vidA], base_url: https://relay.example/v1, api_key: k, models: [sora-2]}\n",
        "umg.yaml",
        {"OPENAI_API_KEY": "k"},
    )
    assert retired_models(config, date(2026, 11, 29)) == [
        "`sora-2` of channel openai was shut down by its vendor on 2026-09-24"
    ]
    assert Router(config).resolve("sora-2").model.id == "sora-2"  # the relay goes on


@pytest.mark.parametrize("model", ["lyria-002", "gpt-realtime"])
def test_the_error_of_a_model_whose_operation_is_not_served_states_it(model: str) -> None:
    assert model_not_found(model).message.endswith(" which is not served.")


def test_each_model_of_a_provider_that_is_gone_has_a_finding() -> None:
    config = parse("channels:\n- {provider: github, api_key: k, models: [gpt, 'github/*']}\n", "umg.yaml", {})
    ends = "of channel github was shut down by its vendor on 2026-07-30; use provider: azure"
    assert retired_models(config, date(2026, 11, 29)) == [f"`gpt` {ends}", f"`github/*` {ends}"]


def test_the_error_of_a_model_that_no_channel_serves_names_the_day_on_which_it_was_shut_down() -> None:
    beginning = "The model `{}` does not exist or you do not have access to it."
    assert model_not_found("sora-2").message == (
        beginning.format("sora-2") + " It was shut down by its vendor on 2026-09-24."
    )
    assert model_not_found("dall-e-3").message == (
        beginning.format("dall-e-3") + " It was shut down by its vendor on 2026-05-12; use gpt-image-2 or later."
    )
    assert model_not_found("openai/sora-2").message.endswith(" on 2026-09-24.")
    assert model_not_found("gpt-9").message == beginning.format("gpt-9")
