"""The conformance kit against a complete gateway with the simulated provider: every check of every face passes."""

from collections import Counter
from collections.abc import AsyncGenerator
from xml.etree import ElementTree as ET

import pytest
import pytest_asyncio
from umg_conformance import result_reports
from umg_conformance.check_files import CHECKS_FOLDER, read_folder
from umg_conformance.check_runner import Outcome, Result
from umg_conformance.check_selection import Target, check, listing

from tests.documents.spec.conftest import CONFIG
from tests.support.gateways import Running, running

FAULTS = {
    "cut_prompt": "Tell me [[fail:mid]]",
    "limit_prompt": "[[fail:429]]",
    "failure_prompt": "[[fail]]",
    "slow_prompt": "[[slow]]",
}
"""Prompts with which the simulated provider fails."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    async with running(CONFIG, tmp_path_factory.mktemp("conformance")) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def results(gateway: Running) -> list[Result]:
    return await check(Target(gateway.url, gateway.key, grpc=gateway.grpc, values=FAULTS))


def test_the_gateway_passes_every_check(results: list[Result]) -> None:
    assert [(result.id, result.problem) for result in results if result.outcome is not Outcome.PASSED] == []


def test_every_face_has_its_checks(results: list[Result]) -> None:
    numbers = Counter(result.face for result in results)
    assert numbers.keys() == {file.face for file in read_folder(CHECKS_FOLDER)}
    assert min(numbers.values()) >= 10
    assert numbers.total() >= 120


def test_every_check_has_a_reason_and_a_source(results: list[Result]) -> None:
    assert all(result.reason and result.source for result in results)
    assert len({(result.face, result.id) for result in results}) == len(results)


def test_the_junit_file_has_every_check(results: list[Result]) -> None:
    root = ET.fromstring(result_reports.junit(results))
    assert len(root.findall("testsuite/testcase")) == len(results)
    assert root.findall("testsuite/testcase/failure") == []


def test_the_list_names_every_check(results: list[Result]) -> None:
    text = listing(Target("http://127.0.0.1:1", ""))
    assert all(f"  {result.id} [{result.severity}]" in text for result in results)


@pytest.mark.asyncio(loop_scope="module")
async def test_without_a_value_or_an_address_its_checks_are_skipped(gateway: Running) -> None:
    results = await check(Target(gateway.url, gateway.key, faces=("chat", "grpc")))
    skipped = {result.id: result.problem for result in results if result.outcome is Outcome.SKIPPED}
    assert skipped["stream_cut.error"] == "nothing has the value cut_prompt: give it by --set cut_prompt=VALUE"
    assert skipped["generate.status"] == "no gRPC address: give one by --grpc"
    assert not any(result.fails_run for result in results)
