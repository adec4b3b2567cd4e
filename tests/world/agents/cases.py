"""Cases: each program with its work and the provider behind the gateway."""

from collections.abc import Iterator

from tests.pairs.table import TEXT_PROVIDERS
from tests.world.agents import document
from tests.world.agents.compaction import ELSEWHERE as ELSEWHERE_COMPACTED
from tests.world.agents.compaction import compactions
from tests.world.agents.document import Settings
from tests.world.agents.programs import PROGRAMS, Program
from tests.world.agents.run import Case
from tests.world.agents.scenarios import BY_NAME as SCENARIO
from tests.world.agents.scenarios import SCENARIOS, Scenario

MAX_USED = ("Claude Code", "Codex", "Gemini CLI")
# The one program that CI also runs without the gateway: a fault of a scripted provider shows behind the gateway, too.
ALONE = "Codex"
# The one format beside its own with which CI runs another program.
ELSEWHERE = {"opencode": "native", "Qwen Code": "messages", "aider": "responses", "Continue": "messages"}


def settings_of(program: Program) -> list[Settings]:
    """Return the settings of a program, the usual ones first."""
    return [
        each for each in document.settings(document.PAGE.read_text(encoding="utf-8")) if each.program == program.name
    ]


def every_case() -> list[Case]:
    """Return all that `make agents` runs."""
    return [case for program in PROGRAMS for case in _of(program)]


def _of(program: Program) -> Iterator[Case]:
    usual, *others = settings_of(program)
    for each in (usual, *others):
        if works_alone(program, each):
            yield Case(program, each, SCENARIO["file"], each.format, model=_known(program, each), gateway=False)
    for scenario in scenarios_of(program):
        for upstream in (usual.format,) if scenario.unknown else TEXT_PROVIDERS:
            yield Case(program, usual, scenario, upstream)
    for between in TEXT_PROVIDERS:
        if between != usual.format:
            yield Case(program, usual, SCENARIO["file"], usual.format, through=between)
    for other in others:
        for upstream in TEXT_PROVIDERS:
            yield Case(program, other, SCENARIO["file"], upstream, model=_known(program, other))
    yield from compactions(program, usual)
    for known in program.known_ids:
        for upstream in TEXT_PROVIDERS:
            yield Case(program, usual, SCENARIO["file"], upstream, model=known)


def works_alone(program: Program, settings: Settings) -> bool:
    """Return whether a program works without a gateway, which restores the reasoning that the program does not return,
    and has formats that no provider has.
    """
    return settings.format in TEXT_PROVIDERS and (program.returns_reasoning or settings.format != "chat")


def scenarios_of(program: Program) -> list[Scenario]:
    """Return the work that a program can do."""
    return [scenario for scenario in SCENARIOS if program.pictures or not scenario.picture]


def _known(program: Program, settings: Settings) -> str:
    return "claude-sonnet-4-5" if (program.name, settings.format) == ("Qwen Code", "messages") else ""


def few_cases() -> list[Case]:
    """Return all that CI runs: each program with a file to write, the most used ones with more of the rest."""
    found = list[Case]()
    for program in PROGRAMS:
        usual = settings_of(program)[0]
        most_used = program.name in MAX_USED
        if program.name == ALONE:
            found.append(Case(program, usual, SCENARIO["file"], usual.format, gateway=False))
        upstreams = TEXT_PROVIDERS if most_used else (usual.format, ELSEWHERE[program.name])
        found += [Case(program, usual, SCENARIO["file"], upstream) for upstream in upstreams]
        if most_used:
            found += [
                Case(program, usual, SCENARIO[name], usual.format)
                for name in ("picture", "continued", "error", "refused")
            ]
        for other in settings_of(program):
            if other.format not in TEXT_PROVIDERS:  # which no other case calls
                found.append(Case(program, other, SCENARIO["file"], ELSEWHERE[program.name]))
        if (elsewhere := ELSEWHERE_COMPACTED.get(program.name)) is not None:
            found += [case for case in compactions(program, usual) if case.upstream == elsewhere]
    return found
