"""Programs against the gateway, for CI: `make agents` runs every program with every scenario and every format."""

from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from tests.pairs.table import TEXT_PROVIDERS
from tests.world.agents.all import run_all
from tests.world.agents.cases import every_case, few_cases, scenarios_of
from tests.world.agents.install import installed
from tests.world.agents.programs import PROGRAMS, Program
from tests.world.agents.run import Case, Outcome
from tests.world.sdk.runner import installed_or_skipped

CASES = few_cases()
AT_ONCE = 2


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def outcomes(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[dict[str, Outcome], None]:
    """Run all cases, a few at a time: one program alone leaves most of the machine unused."""
    programs = installed_or_skipped(installed)
    done = await run_all(CASES, programs, tmp_path_factory.mktemp("agents"), AT_ONCE)
    yield {outcome.case.id: outcome for outcome in done}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_program_does_its_work(case: Case, outcomes: dict[str, Outcome]) -> None:
    problems = outcomes[case.id].problems
    assert not problems, "\n".join(problems)


@pytest.mark.asyncio(loop_scope="module")
async def test_continue_calls_chat_completions_of_a_provider_of_ollama(outcomes: dict[str, Outcome]) -> None:
    [case] = [case for case in CASES if (case.program.name, case.settings.format) == ("Continue", "ollama_chat")]
    assert {exchange.path for exchange in outcomes[case.id].exchanges} == {"/v1/chat/completions"}


def test_every_case_has_a_name_of_its_own() -> None:
    names = [case.id for case in every_case()]
    assert len(set(names)) == len(names)
    assert {case.id for case in CASES} <= set(names)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_program_does_all_its_work_with_a_provider_of_each_format(program: Program) -> None:
    found = {(case.scenario.name, case.upstream) for case in every_case() if case.program is program}
    wanted = {(each.name, name) for each in scenarios_of(program) for name in TEXT_PROVIDERS if not each.unknown}
    assert wanted <= found
    assert "error" in {name for name, _ in found}
