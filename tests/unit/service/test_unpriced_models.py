"""Models without a price, as they are named by the log and the metrics, and the keys to which they are refused."""

from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.config import parse
from umg_grpc.routing import Router, shortened, unpriced_models
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.service_metrics import Metrics
from umg_grpc.service.unpriced_models import FILE_NAME, MAX_LABELS, UnpricedModels
from umg_grpc.store import Store, open_store

CONFIG = """\
channels:
- {name: plain, protocols: [chat], base_url: "http://a", models: [m, n, gpt-4o, "vendor/*"]}
- {name: other, protocols: [chat], base_url: "http://a", models: [n], unpriced: {output: 1}}
- {name: both, protocols: [chat, embeddings], base_url: "http://a", models: [o], unpriced: {output: 1}}
- {name: inside, protocols: [sandbox], models: [famO-5]}
models: {vendor/known: {}}
"""
UNPRICED = ["m", "vendor/known", "o"]
"""`n` has a price at one channel; `o` has none for embeddings."""


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store, None]:
    opened = await open_store("sqlite", tmp_path)
    yield opened
    await opened.aclose()


def made(config: str = CONFIG) -> UnpricedModels:
    return UnpricedModels(Channels(Router(parse(config, "umg.yaml", {}))), Metrics())


def test_models_without_a_price_for_an_operation_are_known() -> None:
    assert sorted(unpriced_models(Router(parse(CONFIG, "umg.yaml", {})))) == sorted(UNPRICED)
    assert made(CONFIG + "unpriced: free\n").known == ("o",), "its channel states a price of its own"


def test_a_list_of_names_has_a_bounded_length() -> None:
    assert shortened(["a", "b"]) == "a, b"
    assert shortened([f"m{number}" for number in range(12)]).endswith("m8, m9 and 2 more")


def test_a_model_of_a_pattern_is_logged_at_its_first_call() -> None:
    models = made()
    with capture_logs() as logged:
        for model in ("vendor/x", "vendor/x", "m"):
            models.note(model)
    assert [(line["event"], line["model"]) for line in logged] == [("a model without a price is called", "vendor/x")]


def values(metrics: Metrics) -> Mapping[str, float]:
    lines = [line for line in metrics.exposition().decode().splitlines() if line.startswith("umg_unpriced_models{")]
    return {line.split('"')[1]: float(line.rpartition(" ")[2]) for line in lines}


def test_the_metric_names_known_and_called_models_up_to_a_bound() -> None:
    metrics = Metrics()
    models = UnpricedModels(Channels(Router(parse(CONFIG, "umg.yaml", {}))), metrics)
    models.note("vendor/x")
    assert values(metrics) == dict.fromkeys((*UNPRICED, "vendor/x"), 1.0)
    for number in range(MAX_LABELS):
        models.note(f"vendor/{number}")
    assert values(metrics)["other"] == len(UNPRICED) + 1


def test_a_start_logs_the_models() -> None:
    with capture_logs() as logged:
        made().log()
        made("channels: [{name: inside, protocols: [sandbox], models: [famO-5]}]\n").log()
    [line] = logged
    assert (line["event"], line["count"]) == ("models without a price", 3)


async def test_the_first_start_of_a_version_names_the_keys_that_are_refused_models(
    store: Store, tmp_path: Path
) -> None:
    keys, models = ApiKeys(store), made()
    await keys.create("all", budget_micro_credits=1)
    await keys.create("without a budget")
    await keys.create("one model", budget_micro_credits=1, model_patterns=["m"])
    await keys.create("priced models", budget_micro_credits=1, model_patterns=["n", "famO-5"])
    await keys.create("the channel without a price", budget_micro_credits=1, channels=["plain"], model_patterns=["n"])
    await keys.create("text alone", budget_micro_credits=1, operations=["generate"], model_patterns=["o"])
    await keys.create("revoked", budget_micro_credits=1)
    await keys.revoke("revoked")
    with capture_logs() as logged:
        await models.name_keys(keys, tmp_path)
    named = {line["name"]: line["models"] for line in logged}
    assert named.keys() == {"all", "one model", "the channel without a price"}
    assert {*named["all"].split(", ")} == {*UNPRICED}
    assert (named["one model"], named["the channel without a price"]) == ("m", "n")
    with capture_logs() as logged:
        await models.name_keys(keys, tmp_path)
    assert logged == []
    (tmp_path / FILE_NAME).write_text("an earlier version")
    with capture_logs() as logged:
        await models.name_keys(keys, tmp_path)
    assert len(logged) == 3


@pytest.mark.parametrize("config", ["", "unpriced: free\n"], ids=["the operator has stated nothing", "free"])
async def test_a_start_with_prices_of_all_models_leaves_the_keys_unread(
    config: str, store: Store, tmp_path: Path
) -> None:
    sandbox = "channels: [{name: inside, protocols: [sandbox], models: [famO-5]}]\n"
    await made(sandbox + config).name_keys(ApiKeys(store), tmp_path)
    assert not (tmp_path / FILE_NAME).exists()
