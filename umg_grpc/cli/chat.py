"""`umg chat`: a conversation with a model in the terminal.

Answers and what a command lists go to standard output. All that is said about them (the model, thoughts, usage, errors)
goes to standard error, so that `echo hi | umg chat > answer` holds the answer alone.
"""

import asyncio
import io
import signal
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType

import grpc
from rich.console import Console

from umg_grpc.errors import UmgError
from umg_grpc.status import from_rpc
from umg_grpc.v1 import pb, rpc

with suppress(ImportError):  # not on every platform
    import readline  # noqa: F401 - its import gives `input` arrow keys and a history

PROMPT = "> "
QUIT = "/quit"
LOOK_AGAIN_SECONDS = 0.2
HELP = """\
/model NAME   talk to another model; without a name: say which it is
/models       list the models
/new          forget what was said
/help         this list
/quit         end, as do Ctrl-D and Ctrl-C
Ctrl-C while the model speaks stops it. A line that begins with a space is never a command."""

# What a model could command the terminal with; an answer has no use for them.
CONTROLS = {code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}

ENDED_WELL = frozenset({pb.FINISH_REASON_UNSPECIFIED, pb.FINISH_REASON_STOP, pb.FINISH_REASON_STOP_SEQUENCE})


async def chat(
    channel: grpc.aio.Channel,
    key: str,
    model: str | None,
    *,
    system: str = "",
    max_tokens: int | None = None,
    temperature: float | None = None,
) -> None:
    """Returns when the caller ends the conversation. Each line is a turn, typed or piped in.

    Without a model it is the first that can generate. Raises UmgError when that cannot be found out. To be called in
    the main thread, which alone gets Ctrl-C.
    """
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # a piped file of another encoding is no reason to fail
    conversation = Conversation(model or "", system, max_tokens, temperature)
    await Chat(channel, key, conversation, Screen()).run()


@contextmanager
def _ctrl_c_raises() -> Iterator[None]:
    """A block in which Ctrl-C raises KeyboardInterrupt.

    CPython's line editor waits on, when the signal comes between the writing of its prompt and its waiting; a timer
    makes it look again. The event loop is not told of these signals, since it cannot take them.
    """
    told = signal.set_wakeup_fd(-1)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    alarm = signal.signal(signal.SIGALRM, lambda _number, _frame: None)
    signal.setitimer(signal.ITIMER_REAL, LOOK_AGAIN_SECONDS, LOOK_AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        signal.signal(signal.SIGINT, before)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)


def _text(text: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=text))


@dataclass
class Conversation:
    """What was said until now, and to whom."""

    model: str
    system: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    turns: list[pb.Message] = field(default_factory=list)

    def ask(self, question: str) -> pb.StreamGenerateRequest:
        """The request for the next answer."""
        request = pb.GenerateRequest(
            model=self.model,
            instructions=[_text(self.system)] if self.system else [],
            messages=[*self.turns, pb.Message(role=pb.ROLE_USER, parts=[_text(question)])],
            max_output_tokens=self.max_tokens,
            temperature=self.temperature,
            include_usage=True,
        )
        return pb.StreamGenerateRequest(request=request)

    def keep(self, question: str, answer: str) -> None:
        """Adds a turn of each. A question that got no word in answer is forgotten: two turns of the user in a row are
        refused by some models.
        """
        if answer:
            self.turns.append(pb.Message(role=pb.ROLE_USER, parts=[_text(question)]))
            self.turns.append(pb.Message(role=pb.ROLE_ASSISTANT, parts=[_text(answer)]))


@dataclass(frozen=True)
class Piece:
    """More of an answer."""

    text: str
    thought: bool = False


@dataclass
class Answer:
    """What a stream has brought until now."""

    text: str = ""
    usage: pb.Usage | None = None
    finish_reason: "pb.FinishReason.ValueType" = pb.FINISH_REASON_UNSPECIFIED

    def feed(self, message: pb.StreamGenerateResponse) -> Iterator[Piece]:
        """What the message adds for the eye. Images, sound and the provider's own tools are not for a terminal."""
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
                case _:
                    pass

    def summary(self, seconds: float) -> str:
        """One line: the tokens, their speed over the whole call, and why it ended where that is not plain."""
        said: list[str] = []
        if self.usage is not None:
            about = "about " if self.usage.estimated else ""
            said.append(f"{about}{self.usage.input_tokens} tokens in, {self.usage.output_tokens} out")
            said.append(f"{self.usage.output_tokens / max(seconds, 0.001):.1f} tokens/s")
        if self.finish_reason not in ENDED_WELL:
            name = pb.FinishReason.Name(self.finish_reason).removeprefix("FINISH_REASON_")
            said.append(f"ended by {name.lower().replace('_', ' ')}")
        return ", ".join(said)


class Screen:
    """Standard output and standard error, told apart and never on one line."""

    def __init__(self) -> None:
        self._notes = Console(stderr=True, highlight=False)
        self._unfinished: str = ""  # which of the two stands within a line

    def piece(self, piece: Piece) -> None:
        """Shows more of an answer as it is, and of a thought dimmed."""
        shown = piece.text.translate(CONTROLS)
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
        """A line that was asked for."""
        self.piece(Piece(f"{text}\n"))

    def note(self, text: str, style: str = "dim") -> None:
        """A line about the conversation."""
        self.end_line()
        self._notes.out(text.translate(CONTROLS), style=style)

    def error(self, message: str) -> None:
        """What went wrong, in one line."""
        self.note(f"error: {' '.join(message.split())}", style="red")

    def end_line(self) -> None:
        """Goes to a new line unless one begins already."""
        match self._unfinished:
            case "answers":
                sys.stdout.write("\n")
                sys.stdout.flush()
            case "notes":
                self._notes.out("")
        self._unfinished = ""


class Chat:
    """Reads lines, and answers or obeys each."""

    def __init__(self, channel: grpc.aio.Channel, key: str, conversation: Conversation, screen: Screen) -> None:
        self._generation = rpc.GenerationServiceStub(channel)
        self._models = rpc.ModelServiceStub(channel)
        self._credentials = (("authorization", f"Bearer {key}"),)
        self._conversation = conversation
        self._screen = screen
        self._loop = asyncio.get_running_loop()
        self._work: asyncio.Task[None] | None = None  # what Ctrl-C stops
        self._stopped = False

    async def run(self) -> None:
        with self._interrupts():
            if not self._conversation.model and not await self._until_stopped(self._choose()):
                return
            self._screen.note(f"model {self._conversation.model}; /help lists the commands")
            while (line := self._read()) is not None and line.strip() != QUIT:
                if not await self._until_stopped(self._handle(line)):
                    self._screen.note("stopped")

    @contextmanager
    def _interrupts(self) -> Iterator[None]:
        """A block in which Ctrl-C stops the work, if there is any, and not the program."""

        def interrupt(_number: int, _frame: FrameType | None) -> None:
            if self._work is not None:
                self._stopped = True
                self._loop.call_soon_threadsafe(self._work.cancel)

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    async def _until_stopped(self, work: Coroutine[None, None, None]) -> bool:
        """Whether the work came to its end; False when Ctrl-C stopped it."""
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
        """The next line; None at the end of input and on Ctrl-C.

        This blocks the event loop, which has nothing else to do: gRPC keeps the connection in threads of its own. In a
        thread of ours `input` could not be interrupted, and would leave the terminal as the line editor has set it.
        """
        self._screen.end_line()
        typed = sys.stdin.isatty() and sys.stdout.isatty()
        with _ctrl_c_raises():
            try:
                return input(PROMPT if typed else "")
            except (EOFError, KeyboardInterrupt):
                if typed:
                    self._screen.line("")
                return None

    async def _handle(self, line: str) -> None:
        try:
            if line.startswith("/"):
                await self._obey(line)
            elif line.strip():
                await self._answer(line.strip())
        except grpc.aio.AioRpcError as error:
            self._screen.error(from_rpc(error).message)

    async def _obey(self, line: str) -> None:
        command, _, argument = line.partition(" ")
        match command, argument.strip():
            case "/help", _:
                self._screen.line(HELP)
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
        """Shows an answer as it comes. What was said until Ctrl-C is kept, a broken answer is not."""
        answer, began = Answer(), time.perf_counter()
        call = self._generation.StreamGenerate(self._conversation.ask(question), metadata=self._credentials)
        try:
            async for message in call:
                for piece in answer.feed(message):
                    self._screen.piece(piece)
        except asyncio.CancelledError:
            self._conversation.keep(question, answer.text)
            raise
        finally:
            call.cancel()
        self._conversation.keep(question, answer.text)
        if summary := answer.summary(time.perf_counter() - began):
            self._screen.note(summary)

    async def _list(self) -> list[pb.Model]:
        """The models that can be talked to."""
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
        # a real model comes before a simulated one
        real = (model for model in models if "simulated" not in model.owned_by)
        self._conversation.model = next(real, models[0]).id
