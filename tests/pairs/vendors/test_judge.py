"""The judge refuses the requests that vendors refuse, in their words, by sources outside this project."""

import ast
import json
from pathlib import Path

import pytest

from tests.pairs.vendors import sources
from tests.pairs.vendors.calls import RecordedCall, recorded
from tests.pairs.vendors.judge import refusal
from tests.world.sdk.runner import installed_or_skipped

HERE = Path(__file__).parent
CALLS = recorded(HERE / "cases" / "calls.jsonl")
JUDGE = [HERE / f"{name}.py" for name in ("judge", "refusal", "sources", "wheel_types")] + [*HERE.glob("rules/*.py")]


@pytest.fixture(autouse=True, scope="module")
def sources_installed() -> None:
    """Skip the tests where the cost map or the walked SDK cannot be downloaded."""
    installed_or_skipped(sources.cost_map)
    installed_or_skipped(sources.installed)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.id)
def test_a_recorded_request_is_refused_in_the_words_of_its_vendor(call: RecordedCall) -> None:
    assert call.sent is not None
    assert call.sent_protocol is not None
    found = refusal(call.vendor, call.model.own_id, call.sent_protocol, json.dumps(call.sent).encode(), {})
    assert (found.message, found.field) == (call.refusal, call.at) if found else call.refusal is None


@pytest.mark.parametrize("path", JUDGE, ids=lambda path: path.stem)
def test_no_judge_imports_the_product(path: Path) -> None:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    modules = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    modules += [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
    assert not [name for name in modules if name.split(".")[0] in ("umg_grpc", "umg_sandbox", "http_facade")]


def test_each_refusal_names_the_report_or_package_that_it_is_from() -> None:
    assert all(row.reports for row in sources.refusals().values())
