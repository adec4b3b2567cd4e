"""Base of the strict fake providers that make videos. They count submissions and can misbehave."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.providers.server import KEY, FakeProvider, Json, ReceivedRequest, RefusedError

FILE = b"\x00\x00\x00\x18ftypmp42" + bytes(range(256)) * 40
"""File of every result: the beginning of an MP4."""
GONE = "gone"
"""Step of a plan in which the provider does not have the task."""


@dataclass(kw_only=True)
class Task:
    id: str
    model: str
    body: Json
    key: str
    """Key that submitted the task: the others cannot see it."""
    polls: int = 0
    external_id: str = ""
    extra: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Accepted:
    """Fault of a submission: the provider makes the task, and the caller gets another answer."""

    answer: web.Response | None = None
    """The answer; None breaks the connection."""


Fault = Accepted | web.Response
"""Fault of a submission. A response alone: the provider makes no task."""


@dataclass(kw_only=True)
class VideoProvider(FakeProvider):
    """Fake provider that executes tasks by a plan: each query returns the next step."""

    keys: Sequence[str] = (KEY,)
    plan: Sequence[str] = ("queued", "running", "succeeded")
    """Steps of a task: `queued`, `running`, `succeeded`, `failed`, `GONE`, or a word of the provider. The last one
    remains.
    """
    faults: list[Fault] = field(default_factory=list)
    """Faults of the next submissions, in order."""
    query_faults: list[web.Response] = field(default_factory=list)
    """Responses to the next queries."""
    submissions: int = 0
    """Requests to submit a task, accepted or not."""
    queries: int = 0
    tasks: dict[str, Task] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)
    failure: tuple[str, str] = ("", "the render broke")
    """Code and message of failed tasks."""
    file_type: str = "video/mp4"
    """Media type of the responses to requests for files."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if received.path.startswith("/files/"):
            return web.Response(body=FILE, content_type=self.file_type)
        key = self.admit(received)
        if self.is_submission(received):
            return await self._submit(request, received, key)
        if self.is_query(received):
            self.queries += 1
            if self.query_faults:
                return fresh(self.query_faults.pop(0))
        return self.other(received, key)

    async def _submit(self, request: web.Request, received: ReceivedRequest, key: str) -> web.StreamResponse:
        self.submissions += 1
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, web.Response):
            return fresh(fault)
        model, external_id = self.read(received)
        number = len(self.tasks) + 1
        body = received.json if received.headers.get("content-type") == "application/json" else {}
        task = Task(id=self.new_id(number, model), model=model, body=body, key=key, external_id=external_id)
        self.tasks[task.id] = task
        if fault is None:
            return web.json_response(self.created(task))
        if fault.answer is not None:
            return fresh(fault.answer)
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    def step(self, task: Task) -> str:
        """Return the step of the plan that the next query of the task returns."""
        position = min(task.polls, len(self.plan) - 1)
        task.polls += 1
        return self.plan[position]

    def task_of(self, task_id: str, key: str) -> tuple[Task, str] | None:
        """Return a task and its step; None for an unknown task and for a task of another key."""
        task = self.tasks.get(task_id)
        if task is None or task.key != key:
            return None
        step = self.step(task)
        return None if step == GONE else (task, step)

    def admit(self, received: ReceivedRequest) -> str:
        """Return the key of a request. Raise RefusedError(401) for a wrong one."""
        scheme, _, key = received.headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or key not in self.keys:
            raise RefusedError(f"Incorrect API key provided: {key}", status=401, code="invalid_api_key")
        return key

    def new_id(self, number: int, model: str) -> str:
        """Return the id of the next task."""
        return f"task-{number}"

    def is_submission(self, received: ReceivedRequest) -> bool:
        raise NotImplementedError

    def is_query(self, received: ReceivedRequest) -> bool:
        return not self.is_submission(received)

    def read(self, received: ReceivedRequest) -> tuple[str, str]:
        """Return the model and the external id of a validated submission. Raise RefusedError for an invalid one."""
        raise NotImplementedError

    def created(self, task: Task) -> Json:
        raise NotImplementedError

    def other(self, received: ReceivedRequest, key: str) -> web.StreamResponse:
        """Answer a query or another call. Raise RefusedError(404) for an unknown path."""
        raise NotImplementedError


def fresh(response: web.Response) -> web.Response:
    """Return a copy of a response, which can be sent once only."""
    return web.Response(status=response.status, body=response.body, headers=response.headers)


def require(condition: object, message: str, at: str | None = None, code: str | None = None) -> None:
    """Raise RefusedError unless the condition is true."""
    if not condition:
        raise RefusedError(message, at, code)


def only(body: Json, *names: str) -> None:
    """Raise RefusedError for a field that the provider does not have."""
    for name in body:
        require(name in names, f"Unknown parameter: '{name}'.", name)


def page(status: int = 502) -> web.Response:
    """Return a page of a proxy in front of the provider."""
    return web.Response(status=status, text="<html><body>Bad gateway</body></html>", content_type="text/html")
