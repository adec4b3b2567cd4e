"""Command `umg chat`: a conversation with a model in the terminal. Responses and the output of commands go to standard
output; notes (model, reasoning, usage, errors) to standard error, so that `echo hi | umg chat > answer` writes only the
response.
"""

import asyncio
import io
import signal
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import assert_never

import grpc
from rich.console import Console

from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.v1 import pb, rpc

with suppress(ImportError):  # missing on some platforms
    import readline  # noqa: F401 - its import adds arrow keys and a history to `input`

INPUT_PROMPT = "> "
QUIT_COMMAND = "/quit"
WAKE_UP_SECONDS = 0.2
CHAT_HELP = """\
/model NAME   talk to another model; without a name: say which it is
/models       list the models
/new          forget what was said
/help         this list
/quit         end, as do Ctrl-D and Ctrl-C
Ctrl-C while the model speaks stops it. A line that begins with a space is never a command."""

# Control characters by which a model could control the terminal; they are removed from responses.
CONTROL_CHARACTERS = {code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}

USUAL_FINISH_REASONS = frozenset({pb.FINISH_REASON_UNSPECIFIED, pb.FINISH_REASON_STOP, pb.FINISH_REASON_STOP_SEQUENCE})


async def chat(
    channel: grpc.aio.Channel,
    key: str,
    model: str | None,
    *,
    system: str = "",
    max_tokens: int | None = None,
    temperature: float | None = None,
) -> None:
    """Run a conversation until the user ends it. Each line of input, typed or piped, is a question. `model`: id, or
    None for the first model that generates text; UmgError is raised if there is none; `max_tokens`, `temperature`: None
    for the model's defaults. Must be called in the main thread, since only that thread receives Ctrl-C.
    """
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # accept piped files in another encoding
    conversation = Conversation(model or "", system, max_tokens, temperature)
    await Chat(channel, key, conversation, Screen()).run()


@contextmanager
def _ctrl_c_raises() -> Iterator[None]:
    """Return a context manager in which Ctrl-C raises KeyboardInterrupt, since the event loop does not run."""
    wakeup_fd = signal.set_wakeup_fd(-1)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    alarm = signal.signal(signal.SIGALRM, lambda _number, _frame: None)
    signal.setitimer(signal.ITIMER_REAL, WAKE_UP_SECONDS, WAKE_UP_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        signal.signal(signal.SIGINT, before)
        signal.set_wakeup_fd(wakeup_fd, warn_on_full_buffer=False)


def _text(text: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=text))


@dataclass
class Conversation:
    """Conversation with a model: its settings, and the questions and responses so far."""

    model: str
    system: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    turns: list[pb.Message] = field(default_factory=list)

    def request(self, question: str) -> pb.StreamGenerateRequest:
        """Return the request for the response to the next question."""
        request = pb.GenerateRequest(
            model=self.model,
            instructions=[_text(self.system)] if self.system else [],
            messages=[*self.turns, pb.Message(role=pb.ROLE_USER, parts=[_text(question)])],
            max_output_tokens=self.max_tokens,
            temperature=self.temperature,
        )
        return pb.StreamGenerateRequest(request=request)

    def keep(self, question: str, response: str) -> None:
        """Add a question and its response to the conversation. A question without a response is left out, since some
        models reject two consecutive user messages.
        """
        if response:
            self.turns.append(pb.Message(role=pb.ROLE_USER, parts=[_text(question)]))
            self.turns.append(pb.Message(role=pb.ROLE_ASSISTANT, parts=[_text(response)]))


@dataclass(frozen=True)
class Piece:
    """Piece of text of a streamed response; `thought` marks reasoning."""

    text: str
    thought: bool = False


@dataclass
class ShownResponse:
    """Response that is being streamed: the text received so far, usage and finish reason."""

    text: str = ""
    usage: pb.Usage | None = None
    finish_reason: "pb.FinishReason.ValueType" = pb.FINISH_REASON_UNSPECIFIED

    def feed(self, message: pb.StreamGenerateResponse) -> Iterator[Piece]:
        """Yield the text and reasoning in the stream's next message, without images, audio and the provider's tools."""
        for event in message.events:
            match event.WhichOneof("kind"):
                case "text_delta":
                    self.text += event.text_delta
                    yield Piece(event.text_delta)
                case "refusal_delta":
                    self.text += event.refusal_delta
                    yield Piece(event.refusal_delta)
                case "reasoning_delta":
                    yield Piece(event.reasoning_delta, thought=True)
                case "summary_delta":
                    yield Piece(event.summary_delta.text, thought=True)
                case "usage":
                    self.usage = event.usage
                case "finished":
                    self.finish_reason = event.finished.finish_reason
                case "started" | "part_started" | "part_updated" | "part_ended" | "state" | "opaque":
                    pass
                case "arguments_delta" | "citation" | "logprobs" | "media_delta":
                    pass
                case None:
                    pass  # a kind newer than this build
                case unhandled:
                    assert_never(unhandled)

    def summary(self, seconds: float) -> str:
        """Return a line with the tokens, the tokens per second of the whole call, and an unusual finish reason."""
        facts: list[str] = []
        if self.usage is not None:
            about = "about " if self.usage.estimated else ""
            facts.append(f"{about}{self.usage.input_tokens} tokens in, {self.usage.output_tokens} out")
            facts.append(f"{self.usage.output_tokens / max(seconds, 0.001):.1f} tokens/s")
        if self.finish_reason not in USUAL_FINISH_REASONS:
            name = pb.FinishReason.Name(self.finish_reason).removeprefix("FINISH_REASON_")
            facts.append(f"ended by {name.lower().replace('_', ' ')}")
        return ", ".join(facts)


class Screen:
    """Terminal output: answers on standard output, and notes on standard error, each on its own lines."""

    def __init__(self) -> None:
        self._notes = Console(stderr=True, highlight=False)
        self._unfinished: str = ""  # the output with an unfinished line: answers, notes or none

    def piece(self, piece: Piece) -> None:
        """Print a piece of a response unchanged, or dimmed if it is reasoning."""
        shown = piece.text.translate(CONTROL_CHARACTERS)
        if not shown:
            return
        where = "notes" if piece.thought else "answers"
        if self._unfinished != where:
            self.end_line()
        if piece.thought:
            self._notes.out(shown, style="dim", end="")
        else:
            sys.stdout.write(shown)
            sys.stdout.flush()
        self._unfinished = "" if shown.endswith("\n") else where

    def line(self, text: str) -> None:
        """Print a line of output of a command, for example of `/help`."""
        self.piece(Piece(f"{text}\n"))

    def note(self, text: str, style: str = "dim") -> None:
        """Print a note about the conversation."""
        self.end_line()
        self._notes.out(text.translate(CONTROL_CHARACTERS), style=style)

    def error(self, message: str) -> None:
        """Print an error message in one line."""
        self.note(f"error: {' '.join(message.split())}", style="red")

    def end_line(self) -> None:
        """End the current line if it is not empty."""
        if self._unfinished == "answers":
            sys.stdout.write("\n")
            sys.stdout.flush()
        elif self._unfinished == "notes":
            self._notes.out("")
        self._unfinished = ""


class Chat:
    """Input loop that answers each line as a question, or runs it as a command if it begins with `/`."""

    def __init__(self, channel: grpc.aio.Channel, key: str, conversation: Conversation, screen: Screen) -> None:
        self._generation = rpc.GenerationServiceStub(channel)
        self._models = rpc.ModelServiceStub(channel)
        self._credentials = (("authorization", f"Bearer {key}"),)
        self._conversation = conversation
        self._screen = screen
        self._loop = asyncio.get_running_loop()
        self._work: asyncio.Task[None] | None = None  # the task that Ctrl-C stops
        self._stopped = False

    async def run(self) -> None:
        """Run the conversation until the end of the input, `/quit` or Ctrl-C."""
        with self._interrupts():
            if not self._conversation.model and not await self._until_stopped(self._choose()):
                return
            self._screen.note(f"model {self._conversation.model}; /help lists the commands")
            while (line := self._read()) is not None and line.strip() != QUIT_COMMAND:
                if not await self._until_stopped(self._handle(line)):
                    self._screen.note("stopped")

    @contextmanager
    def _interrupts(self) -> Iterator[None]:
        """Return a context manager in which Ctrl-C stops the current response, not the program."""

        def interrupt() -> None:
            if self._work is not None:
                self._stopped = True
                self._work.cancel()

        before = signal.getsignal(signal.SIGINT)
        self._loop.add_signal_handler(signal.SIGINT, interrupt)  # wakes the loop whichever thread gets the signal
        try:
            yield
        finally:
            self._loop.remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, before)

    async def _until_stopped(self, work: Coroutine[None, None, None]) -> bool:
        """Run a coroutine as a task that Ctrl-C cancels. Return True if it completed, False if Ctrl-C stopped it."""
        self._stopped = False
        self._work = asyncio.create_task(work)
        try:
            await self._work
        except asyncio.CancelledError:
            if not self._stopped:
                raise
            return False
        finally:
            self._work = None
        return True

    def _read(self) -> str | None:
        """Return the next line of input; None at its end and after Ctrl-C."""
        self._screen.end_line()
        typed = sys.stdin.isatty() and sys.stdout.isatty()
        with _ctrl_c_raises():
            try:
                return input(INPUT_PROMPT if typed else "")
            except (EOFError, KeyboardInterrupt):
                if typed:
                    self._screen.line("")
                return None

    async def _handle(self, line: str) -> None:
        try:
            if line.startswith("/"):
                await self._run_command(line)
            elif line.strip():
                await self._answer(line.strip())
        except grpc.aio.AioRpcError as error:
            self._screen.error(from_rpc(error).message)

    async def _run_command(self, line: str) -> None:
        command, _, argument = line.partition(" ")
        match command, argument.strip():
            case "/help", _:
                self._screen.line(CHAT_HELP)
            case "/models", _:
                for model in await self._list():
                    mark = "*" if model.id == self._conversation.model else " "
                    self._screen.line(f"{mark} {model.id}")
            case "/model", "":
                self._screen.line(self._conversation.model)
            case "/model", name:
                await self._models.GetModel(pb.GetModelRequest(model=name), metadata=self._credentials)
                self._conversation.model = name
                self._screen.note(f"model {name}")
            case "/new", _:
                self._conversation.turns.clear()
                self._screen.note("a new conversation")
            case unknown, _:
                self._screen.error(f"there is no command {unknown}; /help lists them")

    async def _answer(self, question: str) -> None:
        response, began = ShownResponse(), time.perf_counter()
        call = self._generation.StreamGenerate(self._conversation.request(question), metadata=self._credentials)
        try:
            async for message in call:
                for piece in response.feed(message):
                    self._screen.piece(piece)
        except asyncio.CancelledError:
            self._conversation.keep(question, response.text)
            raise
        finally:
            call.cancel()
        self._conversation.keep(question, response.text)
        if summary := response.summary(time.perf_counter() - began):
            self._screen.note(summary)

    async def _list(self) -> list[pb.Model]:
        response = await self._models.ListModels(pb.ListModelsRequest(), metadata=self._credentials)
        return [model for model in response.models if pb.MODEL_OPERATION_GENERATE in model.operations]

    async def _choose(self) -> None:
        try:
            models = await self._list()
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error) from None
        if not models:
            message = "this key may use no model that generates text; name one with --model, or use another key"
            raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message)
        # prefer a real model over a simulated one
        real = (model for model in models if "simulated" not in model.owned_by)
        self._conversation.model = next(real, models[0]).id
