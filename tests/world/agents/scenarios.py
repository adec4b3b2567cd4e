"""Scenarios: the work that each program is given, and the checks of its result."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from tests.world.agents import model
from tests.world.agents.programs import Program

WORD = "pangolin"
FILE = "out.txt"
PICTURE = "picture.png"
SIZE = (64, 48)
UNKNOWN_MODEL = "no-such-model"
MODEL_NOT_FOUND = f"The model `{UNKNOWN_MODEL}` does not exist or you do not have access to it."
MAX_REQUESTS = 12  # of one run: a program that sends more requests retries without end


@dataclass(frozen=True)
class Finished:
    status: int
    out: str
    err: str
    folder: Path  # in which the program worked
    began: float = 0.0  # monotonic time of its start

    @property
    def printed(self) -> str:
        """Both output streams on one line: programs break long lines."""
        return " ".join((self.out + "\n" + self.err).split())


def prepare(folder: Path) -> None:
    """Put the picture into the folder of a run."""
    Image.new("RGB", SIZE, (200, 30, 30)).save(folder / PICTURE)


@dataclass(frozen=True)
class Scenario:
    """Work for a program: the prompt of each run, and the problems of its last one.

    `{folder}` in a prompt is the directory in which the program works: the tools of most want absolute paths.
    """

    name: str
    prompts: tuple[str, ...]
    problems: Callable[[Program, Finished], Iterator[str]]
    picture: bool = False
    statuses: tuple[int, ...] = ()  # of the responses that are no successes, as the scenario expects them
    unknown: bool = False  # the gateway does not know the model
    prepare: Callable[[Path], None] = prepare  # writes the files of the folder in which the program works


def _shown(finished: Finished, text: str) -> Iterator[str]:
    if text not in " ".join(finished.out.split()):
        yield f"`{text}` was not printed: {_tail(finished)}"


def _tail(finished: Finished) -> str:
    return f"{' '.join(finished.out.split())[-300:]} / {' '.join(finished.err.split())[-300:]}"


def _ended(program: Program, finished: Finished) -> Iterator[str]:
    if finished.status != 0:
        yield f"exit status {finished.status}: {_tail(finished)}"


def _answered(program: Program, finished: Finished) -> Iterator[str]:
    yield from _ended(program, finished)
    yield from _shown(finished, model.backwards(WORD))


def _written(program: Program, finished: Finished) -> Iterator[str]:
    yield from _ended(program, finished)
    path = finished.folder / FILE
    content = path.read_text().strip() if path.exists() else None
    if content != WORD:
        yield f"{FILE} holds {content!r}: {_tail(finished)}"
    yield from _shown(finished, model.DONE)


def _described(program: Program, finished: Finished) -> Iterator[str]:
    yield from _ended(program, finished)
    expected = [model.described(f"image/{kind}", *SIZE) for kind in ("png", "jpeg")]
    if not any(text in " ".join(finished.out.split()) for text in expected):
        yield f"`{expected[0]}` was not printed: {_tail(finished)}"


def _reported(program: Program, finished: Finished) -> Iterator[str]:
    if program.status and finished.status == 0:
        yield "exit status 0 of a run that failed"
    expected = program.not_found.format(model=UNKNOWN_MODEL) or MODEL_NOT_FOUND
    if expected not in finished.printed:
        yield f"`{expected}` was not printed: {_tail(finished)}"


def _passed_on(program: Program, finished: Finished) -> Iterator[str]:
    if program.status and finished.status == 0:
        yield "exit status 0 of a run that failed"
    if model.REFUSED not in finished.printed:
        yield f"`{model.REFUSED}` was not printed: {_tail(finished)}"


def _summarized(program: Program, finished: Finished) -> Iterator[str]:
    yield from _ended(program, finished)
    yield from _shown(finished, model.backwards(WORD + model.COMPACTED))


SCENARIOS = (
    Scenario("question", (model.SPELL.format(word=WORD),), _answered),
    Scenario("file", (model.WRITE.format(word=WORD, path=f"{{folder}}/{FILE}"),), _written),
    Scenario("picture", (model.DESCRIBE.format(path=f"{{folder}}/{PICTURE}"),), _described, picture=True),
    Scenario("continued", (model.REMEMBER.format(word=WORD), model.RECALL), _answered),
    Scenario("error", (model.SPELL.format(word=WORD),), _reported, statuses=(404,), unknown=True),
    Scenario("refused", (model.REFUSE.format(word=WORD),), _passed_on, statuses=(400,)),
)
FILLER = "It is a fine day. " * 300
"""Text that makes a conversation longer than its summary, without which Gemini CLI keeps the conversation."""
COMPACTED = Scenario("compacted", (f"{model.REMEMBER_LONG.format(word=WORD)} {FILLER}", model.RECALL), _summarized)
"""Work of the programs that compact a conversation, see `compaction`."""
BY_NAME = {scenario.name: scenario for scenario in (*SCENARIOS, COMPACTED)}
