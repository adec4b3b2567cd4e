"""Implementation of `umg video` and `umg tasks`: video tasks at a gateway, over gRPC. Names of saved files are printed
to standard output, the progress to standard error.
"""

import asyncio
import re
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import grpc
from google.protobuf.json_format import MessageToDict
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import from_rpc, has_status_of
from umg_grpc.base.shell_quoting import shell_word
from umg_grpc.cli.chat_command import CONTROL_CHARACTERS
from umg_grpc.cli.gateway_connection import GrpcTarget
from umg_grpc.cli.text_tables import Column, Fit, Form, print_fields, print_table
from umg_grpc.knowledge.families.video_model_rules import ENTRY_RULES, Rules
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.protobuf_json import to_json

TERMINAL_STATES = frozenset({pb.VIDEO_TASK_STATE_SUCCEEDED, pb.VIDEO_TASK_STATE_FAILED, pb.VIDEO_TASK_STATE_CANCELLED})
RECONNECT_SECONDS = 1.0
MAX_RECONNECTIONS = 30
"""Number of times in succession that a broken stream of changes is opened again."""
AGE_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
ALL_KEYS = "*"
TASK_COLUMNS = (
    Column("task"),
    Column("model", 2),
    Column("state"),
    Column("progress", 3, is_number=True),
    Column("age", 3, is_number=True),
    Column("prompt or error", 4, Fit.CUT),
)
FIELD_COLUMNS = (Column("field"), Column("value"))
ENUM_NAME = re.compile(r"^VIDEO_(?:TASK_STATE|TASK_KIND|ENTRY|VARIANT|MEDIA_KIND|MEDIA_ROLE)_(\w+)$")


@dataclass
class VideoOptions:
    """Options of `umg video`, collected from its flags before the model, on which the request depends, is known."""

    prompt: str
    model: str | None
    images: Sequence[pb.VideoMedia] = ()
    last_frame: pb.VideoMedia | None = None
    given: pb.VideoParameters = field(default_factory=pb.VideoParameters)

    def parameters(self, **values: str | int | bool | None) -> None:
        """Set video parameters by name; None leaves a parameter unset."""
        for name, value in values.items():
            if value is not None:
                setattr(self.given, name, value)

    def request(self, model: pb.Model) -> pb.CreateVideoTaskRequest:
        """Return the request for a model: it names an HTTP API that has the model, and sets all required parameters."""
        entry, rules = _entry(model)
        request = pb.CreateVideoTaskRequest(model=model.id, entry=entry, parameters=self.given)
        wanted = request.parameters
        if self.prompt:
            wanted.prompt = self.prompt
        for image in self.images:
            wanted.media.append(image)
            if len(self.images) == 1 and self.last_frame is not None:
                wanted.media[-1].role = pb.VIDEO_MEDIA_ROLE_FIRST_FRAME
        if self.last_frame is not None:
            wanted.media.append(self.last_frame)
            wanted.media[-1].role = pb.VIDEO_MEDIA_ROLE_LAST_FRAME
        required = rules.required if rules is not None else ()
        if rules is not None and "resolution" in required and not wanted.resolution:
            wanted.resolution = str(rules.values["resolution"][0])
        if "duration_seconds" in required and not wanted.duration_seconds:
            wanted.duration_seconds = 5
        return request


def _entry(model: pb.Model) -> "tuple[pb.VideoEntry.ValueType, Rules | None]":
    for name in (model.id, model.family):
        for entry, rows in ENTRY_RULES.items():
            if name in rows:
                return entry, rows[name]
    return pb.VIDEO_ENTRY_UNIFIED, None


def medium(place: str) -> pb.VideoMedia:
    """Return an input image: a URL (`http`, `https`, `asset`) or a file. Raise OSError for an unreadable file."""
    if place.startswith(("http://", "https://", "asset://")):
        return pb.VideoMedia(kind=pb.VIDEO_MEDIA_KIND_IMAGE, url=place)
    return pb.VideoMedia(kind=pb.VIDEO_MEDIA_KIND_IMAGE, data=Path(place).read_bytes())


class VideoClient:
    """Client of the gateway's video service with one API key, as the commands use it."""

    def __init__(self, channel: grpc.aio.Channel, target: GrpcTarget) -> None:
        self.stub = rpc.VideoServiceStub(channel)
        self.models = rpc.ModelServiceStub(channel)
        self.metadata = target.credentials
        self.flags = target.flags

    async def model(self, name: str | None) -> pb.Model:
        """Return the model with an id; for None the first that makes videos. Raise UmgError if there is none."""
        if name is not None:
            found = await self.models.GetModel(pb.GetModelRequest(model=name), metadata=self.metadata)
            return found.model
        listed = await self.models.ListModels(pb.ListModelsRequest(), metadata=self.metadata)
        able = [model for model in listed.models if pb.MODEL_OPERATION_CREATE_VIDEO in model.operations]
        if not able:
            message = "this key may use no model that makes videos; name one with --model, or use another key"
            raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message)
        real = (model for model in able if "simulated" not in model.owned_by)
        return next(real, able[0])

    async def task(self, task_id: str) -> pb.VideoTask:
        """Return a task by its id. Raise AioRpcError."""
        found = await self.stub.GetVideoTask(pb.GetVideoTaskRequest(task_id=task_id), metadata=self.metadata)
        return found.task

    async def changes(self, task_id: str) -> AsyncGenerator[pb.VideoTask, None]:
        """Yield the task after each change until it ends; a broken stream is opened again. Raise AioRpcError."""
        failures = 0
        while True:
            call = self.stub.WatchVideoTask(pb.WatchVideoTaskRequest(task_id=task_id), metadata=self.metadata)
            try:
                async for message in call:
                    failures = 0
                    yield message.task
                return
            except grpc.aio.AioRpcError as error:
                failures += 1
                if not has_status_of(error, pb.ERROR_REASON_UNAVAILABLE) or failures > MAX_RECONNECTIONS:
                    raise
                await asyncio.sleep(RECONNECT_SECONDS)
            finally:
                call.cancel()

    async def save(self, task: pb.VideoTask, output: Path) -> list[Path]:
        """Save the videos of a task to `output`, the second one with `-2` appended and so forth. Return the files."""
        videos = sum(result.variant == pb.VIDEO_VARIANT_VIDEO for result in task.results)
        files = [output, *(output.with_stem(f"{output.stem}-{number}") for number in range(2, videos + 1))]
        for index, file in enumerate(files):
            request = pb.DownloadVideoRequest(task_id=task.task_id, index=index)
            partial = file.with_name(f"{file.name}.part")
            with partial.open("wb") as target:
                async for message in self.stub.DownloadVideo(request, metadata=self.metadata):
                    target.write(message.chunk)
            partial.replace(file)
        return files


@asynccontextmanager
async def _opened(target: GrpcTarget) -> AsyncGenerator[VideoClient, None]:
    """Yield a client of the gateway. Calls that fail in the block raise UmgError."""
    try:
        async with target.opened() as channel:
            yield VideoClient(channel, target)
    except grpc.aio.AioRpcError as error:
        raise from_rpc(error) from None
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise UmgError(pb.ERROR_REASON_INTERNAL, message) from None


async def make(target: GrpcTarget, options: VideoOptions, output: Path | None) -> None:
    """Submit a task, show its progress, and save its videos to `output`; None for a file named after the task."""
    async with _opened(target) as client:
        model = await client.model(options.model)
        created = await client.stub.CreateVideoTask(options.request(model), metadata=client.metadata)
        await _follow(client, created.task, output or Path(f"{created.task.task_id}.mp4"))


async def watch(target: GrpcTarget, task_id: str, output: Path | None) -> None:
    """Show the progress of a task until it ends, and save its videos to `output`; None saves none."""
    async with _opened(target) as client:
        await _follow(client, await client.task(task_id), output)


async def _follow(client: VideoClient, task: pb.VideoTask, output: Path | None) -> None:
    console = Console(stderr=True, highlight=False)
    console.out(f"task {task.task_id}, model {_plain(task.model)}")
    try:
        task = await _progress(client, task, console)
        if task.state != pb.VIDEO_TASK_STATE_SUCCEEDED:
            message = f"the task {_state(task)}: {_plain(task.error.message)} ({_plain(task.error.code)})"
            raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message)
        if output is not None:
            for file in await client.save(task, output):
                print(file)
    except asyncio.CancelledError:  # Ctrl-C
        option = f" -o {shell_word(str(output))}" if output is not None else ""
        console.out(f"the task goes on; to get back: umg tasks watch {shell_word(task.task_id)}{option}{client.flags}")
        raise


async def _progress(client: VideoClient, task: pb.VideoTask, console: Console) -> pb.VideoTask:
    """Show a progress bar until the task ends; without a terminal print a line for each state."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    shown = ""
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as bar:
        line = bar.add_task(_state(task), total=100)
        async for changed in client.changes(task.task_id):
            task = changed
            bar.update(line, description=_state(task), completed=task.progress_percent)
            if not console.is_terminal and _state(task) != shown:
                shown = _state(task)
                console.out(shown)
    return task


async def list_tasks(
    target: GrpcTarget, states: Sequence[str], model: str | None, *, every: bool, limit: int, form: Form
) -> None:
    """Print the newest video tasks as a table. `states`: names of the states, all if empty; `model`: only of this
    model; `every`: tasks of all keys, for an administrator.
    """
    request = pb.ListVideoTasksRequest(
        page_size=limit,
        states=[pb.VideoTaskState.Value(f"VIDEO_TASK_STATE_{name.upper()}") for name in states],
        model=model,
        key_id=ALL_KEYS if every else None,
    )
    async with _opened(target) as client:
        found = await client.stub.ListVideoTasks(request, metadata=client.metadata)
    print_tasks(found.tasks, datetime.now(UTC), form)
    if len(found.tasks) < found.total_count:
        print(f"{len(found.tasks)} of {found.total_count} tasks; --limit shows more", file=sys.stderr)


def print_tasks(tasks: Sequence[pb.VideoTask], now: datetime, form: Form) -> None:
    """Print tasks in a form, with their age at a time."""
    rows = [
        (
            task.task_id,
            _plain(task.model),
            _state(task),
            f"{task.progress_percent} %",
            _age((now - task.create_time.ToDatetime(UTC)).total_seconds()),
            _plain(task.error.message if task.HasField("error") else task.parameters.prompt),
        )
        for task in tasks
    ]
    print_table(TASK_COLUMNS, rows, form, map(_object, tasks))


async def show(target: GrpcTarget, task_id: str, form: Form) -> None:
    """Print a task as a table of its fields."""
    async with _opened(target) as client:
        task = await client.task(task_id)
    print_task(task, form)


def print_task(task: pb.VideoTask, form: Form) -> None:
    """Print all fields of a task in a form."""
    rows = _rows(MessageToDict(_without_media(task), preserving_proto_field_name=True))
    if form.is_text:
        print_fields(rows, max(len(name) for name, _ in rows) + 2, form)
    else:
        print_table(FIELD_COLUMNS, rows, form, [_object(task)])


def _object(task: pb.VideoTask) -> Mapping[str, object]:
    return to_json(_without_media(task))


def _without_media(task: pb.VideoTask) -> pb.VideoTask:
    """Return the task with the sizes of its input files in place of their bytes, which are not for people."""
    for each in task.parameters.media:
        if each.data:
            each.url = f"{len(each.data)} bytes"
    return task


def _rows(value: object, path: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [row for name, each in value.items() for row in _rows(each, f"{path}.{name}" if path else name)]
    if isinstance(value, list):
        return [row for place, each in enumerate(value) for row in _rows(each, f"{path}[{place}]")]
    return [(path, _plain(ENUM_NAME.sub(lambda found: found[1].lower(), str(value))))]


async def cancel(target: GrpcTarget, task_id: str) -> None:
    """Cancel a task that has not ended."""
    async with _opened(target) as client:
        task = await client.task(task_id)
        if task.state in TERMINAL_STATES:
            message = f"the task {_state(task)} before; there is nothing to cancel"
            raise UmgError(pb.ERROR_REASON_WRONG_STATE, message)
        gone = await client.stub.DeleteVideoTask(pb.DeleteVideoTaskRequest(task_id=task_id), metadata=client.metadata)
    print(f"{task_id}: {_state(gone.task)}")


def _state(task: pb.VideoTask) -> str:
    return pb.VideoTaskState.Name(task.state).removeprefix("VIDEO_TASK_STATE_").lower()


def _plain(text: str) -> str:
    return " ".join(text.translate(CONTROL_CHARACTERS).split())


def _age(seconds: float) -> str:
    size, unit = next((each for each in AGE_UNITS if seconds >= each[0]), AGE_UNITS[-1])
    return f"{int(seconds // size)} {unit}"
