"""Command `umg chat` as a process: under a pseudo-terminal and in a pipe, against a scripted gRPC service."""

import asyncio
import os
import pty
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from tests.support.forked_umg_starts import Forked, Program, start_on_terminal, start_with_input
from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import DETAILS_KEY, HTTP_STATUSES, to_status
from umg_grpc.cli.chat_command import Conversation, Piece, ShownResponse
from umg_grpc.routing import model_not_found
from umg_grpc.v1 import pb, rpc

RUNNER = "tests.unit.cli.chat_runner"
DEADLINE_SECONDS = 60
CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"
DIM, RED = "\x1b[2m", "\x1b[31m"

Context = grpc.aio.ServicerContext[object, object]


def event(**kind: Any) -> pb.StreamGenerateResponse:
    return pb.StreamGenerateResponse(events=[pb.GenerateEvent(**kind)])


class Script(rpc.GenerationServiceServicer, rpc.ModelServiceServicer):
    """Service that answers a question by its first word: see `StreamGenerate`."""

    def __init__(self) -> None:
        self.requests: list[pb.GenerateRequest] = []
        self.metadata: dict[str, str | bytes] = {}
        self.go_on = asyncio.Event()
        self.called = asyncio.Event()
        self.left = asyncio.Event()

    async def ListModels(self, request: pb.ListModelsRequest, context: Context) -> pb.ListModelsResponse:
        speaks = [pb.MODEL_OPERATION_GENERATE]
        draws = pb.Model(id="artist", operations=[pb.MODEL_OPERATION_GENERATE_IMAGE])
        return pb.ListModelsResponse(
            models=[draws, pb.Model(id="parrot", operations=speaks), pb.Model(id="raven", operations=speaks)]
        )

    async def GetModel(self, request: pb.GetModelRequest, context: Context) -> pb.GetModelResponse:
        if request.model != "raven":
            await abort(model_not_found(request.model), context)
        return pb.GetModelResponse(model=pb.Model(id=request.model))

    async def StreamGenerate(
        self, request: pb.StreamGenerateRequest, context: Context
    ) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        self.requests.append(request.request)
        self.called.set()
        self.metadata = dict(context.invocation_metadata() or ())
        question = request.request.messages[-1].parts[0].text.text
        try:
            yield event(started=pb.GenerationStarted(model=request.request.model))
            match question.split():
                case ["fail"]:
                    await abort(UmgError(pb.ERROR_REASON_RATE_LIMITED, "too many\nrequests"), context)
                case ["break"]:
                    yield event(text_delta="half an ans")
                    await abort(UmgError(pb.ERROR_REASON_UPSTREAM_CUT, "the provider broke off"), context)
                case ["hang"]:
                    await asyncio.Event().wait()
                case ["endless"]:
                    yield event(text_delta="spoken until here")
                    await asyncio.Event().wait()
                case ["wait"]:
                    yield event(text_delta="first")
                    await self.go_on.wait()
                    yield event(text_delta=" second")
                case ["think"]:
                    yield event(reasoning_delta="hm, let me see")
                    yield event(text_delta="it is 4")
                case ["escape"]:
                    yield event(text_delta="a\x1b]0;title\x07b\x9b2Jc\td")
                case words:
                    for word in words:
                        yield event(text_delta=f"{word} ")
            yield event(finished=pb.CandidateFinished(finish_reason=pb.FINISH_REASON_STOP))
            yield event(usage=pb.Usage(input_tokens=12, output_tokens=34))
        except (asyncio.CancelledError, GeneratorExit):
            self.left.set()
            raise


async def abort(error: UmgError, context: Context) -> None:
    await context.abort(HTTP_STATUSES[error.reason], error.message, ((DETAILS_KEY, to_status(error)),))


@dataclass(frozen=True)
class Served:
    script: Script
    address: str


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    server, script = grpc.aio.server(), Script()
    rpc.add_GenerationServiceServicer_to_server(script, server)
    rpc.add_ModelServiceServicer_to_server(script, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    yield Served(script, address)
    await server.stop(None)


class Terminal:
    """Program in a pseudo-terminal: its output, and a keyboard."""

    def __init__(self, process: Forked, master: int) -> None:
        self.shown = ""
        self._process = process
        self._master = master
        self._seen = 0  # length of the part of `shown` that was waited for
        self._more = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def open(cls, *arguments: str) -> AsyncIterator["Terminal"]:
        master, slave = pty.openpty()
        try:
            environment = {**os.environ, "TERM": "xterm", "INPUTRC": os.devnull}
            process = await start_on_terminal(slave, Program(arguments, environment, module=RUNNER))
        finally:
            os.close(slave)
        terminal = cls(process, master)
        loop = asyncio.get_running_loop()
        loop.add_reader(master, terminal._read)
        try:
            yield terminal
        finally:
            loop.remove_reader(master)
            if process.returncode is None:
                process.kill()
                await process.wait()
            os.close(master)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    async def until(self, text: str) -> str:
        """Wait until `text` is shown. Return all output since the last `until`."""
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                while text not in self.shown[self._seen :]:
                    self._more.clear()
                    await self._more.wait()
        except TimeoutError:
            pytest.fail(f"{text!r} did not come; shown until now: {self.shown!r}")
        start, self._seen = self._seen, self.shown.index(text, self._seen) + len(text)
        return self.shown[start : self._seen]

    async def prompt(self) -> None:
        await self.until("> ")

    async def exit_status(self) -> int:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self._process.wait()

    def _read(self) -> None:
        try:
            self.shown += os.read(self._master, 65536).decode()
        except OSError:  # the program has ended
            asyncio.get_running_loop().remove_reader(self._master)
        self._more.set()


@pytest.fixture(params=["asyncio", "uvloop"])
async def terminal(request: pytest.FixtureRequest, served: Served) -> AsyncIterator[Terminal]:
    async with Terminal.open(request.param, served.address) as terminal:
        await terminal.until("model parrot")
        await terminal.prompt()
        yield terminal


async def test_an_answer_is_streamed_at_once_and_ends_with_its_usage(served: Served, terminal: Terminal) -> None:
    terminal.type("wait\n")
    await terminal.until("first")
    served.script.go_on.set()  # only now can the rest arrive
    await terminal.until(" second")
    await terminal.until("12 tokens in, 34 out, ")
    await terminal.until(" tokens/s")
    await terminal.prompt()


async def test_ctrl_c_stops_the_answer_and_keeps_its_text_so_far(served: Served, terminal: Terminal) -> None:
    terminal.type("endless\n")
    await terminal.until("spoken until here")
    terminal.type(CTRL_C)
    await asyncio.wait_for(served.script.left.wait(), DEADLINE_SECONDS)
    await terminal.until("stopped")
    await terminal.prompt()
    terminal.type("more please\n")
    await terminal.until("more please \r\n")
    turns = [(turn.role, turn.parts[0].text.text) for turn in served.script.requests[-1].messages]
    assert turns == [
        (pb.ROLE_USER, "endless"),
        (pb.ROLE_ASSISTANT, "spoken until here"),
        (pb.ROLE_USER, "more please"),
    ]


async def test_ctrl_c_before_the_first_word_forgets_the_question(served: Served, terminal: Terminal) -> None:
    terminal.type("hang\n")
    await asyncio.wait_for(served.script.called.wait(), DEADLINE_SECONDS)
    terminal.type(CTRL_C)
    await terminal.until("stopped")
    await terminal.prompt()
    terminal.type("hello\n")
    await terminal.until("hello \r\n")
    assert len(served.script.requests[-1].messages) == 1


@pytest.mark.parametrize("keys", [CTRL_C, CTRL_D, "/quit\n", f"half a line{CTRL_C}"], ids=repr)
async def test_the_prompt_ends_the_program(terminal: Terminal, keys: str) -> None:
    terminal.type(keys)
    assert await terminal.exit_status() == 0
    assert "Traceback" not in terminal.shown


async def test_ctrl_c_at_the_prompt_ends_the_program_also_after_an_answer(served: Served, terminal: Terminal) -> None:
    terminal.type("endless\n")
    await terminal.until("spoken until here")
    terminal.type(CTRL_C)
    await terminal.until("stopped")
    await terminal.prompt()
    terminal.type(CTRL_C)
    assert await terminal.exit_status() == 0
    assert "Traceback" not in terminal.shown


async def test_an_error_is_one_line_and_the_prompt_returns(served: Served, terminal: Terminal) -> None:
    terminal.type("fail\n")
    await terminal.until(f"{RED}error: too many requests")
    await terminal.prompt()
    terminal.type("hello\n")
    await terminal.until("34 out")
    assert len(served.script.requests[-1].messages) == 1


async def test_an_answer_that_breaks_off_is_an_error_and_not_in_the_conversation(
    served: Served, terminal: Terminal
) -> None:
    terminal.type("break\n")
    await terminal.until(f"half an ans\r\n{RED}error: the provider broke off")
    await terminal.prompt()
    terminal.type("hello\n")
    await terminal.until("34 out")
    assert len(served.script.requests[-1].messages) == 1


async def test_reasoning_is_dimmed_and_on_lines_of_its_own(terminal: Terminal) -> None:
    terminal.type("think\n")
    await terminal.until(f"{DIM}hm, let me see\x1b[0m\r\nit is 4\r\n")


async def test_an_answer_cannot_command_the_terminal(terminal: Terminal) -> None:
    terminal.type("escape\n")
    await terminal.until("a]0;titleb2Jc\td\r\n")


async def test_the_arrow_up_brings_the_last_line_back(served: Served, terminal: Terminal) -> None:
    terminal.type("hello\n")
    await terminal.until("34 out")
    await terminal.prompt()
    terminal.type(f"{UP}\n")
    await terminal.until("34 out")
    assert [request.messages[-1].parts[0].text.text for request in served.script.requests] == ["hello", "hello"]


async def test_commands_choose_the_model_and_begin_a_new_conversation(served: Served, terminal: Terminal) -> None:
    terminal.type("hello\n")
    await terminal.until("34 out")
    await terminal.prompt()
    terminal.type("/models\n")
    await terminal.until("* parrot\r\n  raven\r\n")
    await terminal.prompt()
    terminal.type("/model nobody\n")
    await terminal.until("error: ")
    await terminal.prompt()
    terminal.type("/model raven\n")
    await terminal.until("model raven")
    await terminal.prompt()
    terminal.type("/new\n")
    await terminal.until("a new conversation")
    await terminal.prompt()
    terminal.type("again\n")
    await terminal.until("34 out")
    assert served.script.requests[-1].model == "raven"
    assert len(served.script.requests[-1].messages) == 1
    await terminal.prompt()
    terminal.type("/help\n")
    await terminal.until("/new ")
    await terminal.prompt()
    terminal.type("/nonsense\n")
    await terminal.until("error: there is no command /nonsense")
    await terminal.prompt()


@dataclass(frozen=True)
class Piped:
    answers: str
    notes: str
    status: int | None


async def pipe(stdin: str | bytes, *arguments: str) -> Piped:
    text = stdin if isinstance(stdin, bytes) else stdin.encode()
    process = await start_with_input(text, Program(arguments, os.environ, module=RUNNER))
    async with asyncio.timeout(DEADLINE_SECONDS):
        answers, notes = await process.communicate()
    return Piped(answers.decode(), notes.decode(), process.returncode)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_piped_lines_are_turns_and_only_their_answers_go_to_standard_output(served: Served, loop: str) -> None:
    piped = await pipe("hi Zoë 🙂\nthink\n", loop, served.address, "raven")
    assert (piped.answers, piped.status) == ("hi Zoë 🙂 \nit is 4\n", 0)
    assert "model raven" in piped.notes
    assert "hm, let me see\n" in piped.notes
    assert piped.notes.count("12 tokens in, 34 out") == 2
    assert "\x1b" not in piped.notes
    request = served.script.requests[-1]
    assert [turn.parts[0].text.text for turn in request.messages] == ["hi Zoë 🙂", "hi Zoë 🙂 ", "think"]
    assert request.instructions[0].text.text == "Be brief."
    assert (request.model, request.max_output_tokens, request.temperature) == ("raven", 9, 0.0)
    assert served.script.metadata["authorization"] == "Bearer umg-test-key"


async def test_a_last_line_without_an_end_is_a_turn_too(served: Served) -> None:
    assert (await pipe("hi", "uvloop", served.address)).answers == "hi \n"


async def test_no_input_at_all_ends_at_once(served: Served) -> None:
    piped = await pipe("", "uvloop", served.address)
    assert (piped.answers, piped.status, served.script.requests) == ("", 0, [])


async def test_bytes_that_are_no_text_are_replaced(served: Served) -> None:
    assert (await pipe(b"caf\xe9\n", "uvloop", served.address)).answers == "caf� \n"


def test_a_summary_has_the_reason_of_an_answer_that_ended_early() -> None:
    answer = ShownResponse()
    message = pb.StreamGenerateResponse(
        events=[
            pb.GenerateEvent(refusal_delta="I would rather not"),
            pb.GenerateEvent(finished=pb.CandidateFinished(finish_reason=pb.FINISH_REASON_CONTENT_FILTER)),
            pb.GenerateEvent(usage=pb.Usage(input_tokens=5, output_tokens=10, estimated=True)),
        ]
    )
    assert list(answer.feed(message)) == [Piece("I would rather not")]
    assert answer.text == "I would rather not"
    assert answer.summary(2.0) == "about 5 tokens in, 10 out, 5.0 tokens/s, ended by content filter"


def test_unset_options_are_not_sent() -> None:
    request = Conversation("m").request("hi").request
    assert not request.instructions
    assert not request.HasField("max_output_tokens")
    assert not request.HasField("temperature")
