"""Runner of the checks: makes the calls of each check file in order, and compares the responses with expectations."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from umg_conformance import expectations, response_paths
from umg_conformance.call_responses import CallResponse
from umg_conformance.check_files import Call, Check, CheckFile, Expectation, Request, Severity
from umg_conformance.check_variables import UnsetError, replaced
from umg_conformance.http_client import HttpCaller, UnreachableError

if TYPE_CHECKING:
    from umg_conformance.grpc_client import GrpcCaller

NO_ROUTE = frozenset({404, 405, 501, "UNIMPLEMENTED"})
"""Statuses of a first call that show that a face is not served."""


BUSY_STATUSES = frozenset({429, 503, "RESOURCE_EXHAUSTED", "UNAVAILABLE"})
"""Statuses after which a call is repeated, if the response has the time to wait: they are no difference of a format."""
MAX_REPEATS = 3
LONGEST_WAIT = 60.0
RETRY_INFO = response_paths.parse("body.error.RetryInfo.retry_delay")


class Outcome(Enum):
    """Outcome of a check: passed, failed, or skipped because it could not be made."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Result:
    """Result of one check: identity (format, id, severity, reason, source), outcome, and the problem if it failed."""

    face: str
    id: str
    severity: Severity
    reason: str
    source: str
    outcome: Outcome
    problem: str = ""
    """Difference of a failed check, or the cause of a skipped one."""
    seconds: float = 0

    @property
    def fails_run(self) -> bool:
        return self.outcome is Outcome.FAILED and self.severity == "required"


@dataclass
class Runner:
    """Runner of check files against one server over HTTP and, if it has a gRPC address, over gRPC."""

    http: HttpCaller
    grpc: "GrpcCaller | None"
    models: Mapping[str, str]
    values: Mapping[str, object] = field(default_factory=dict)

    async def run(self, file: CheckFile) -> AsyncIterator[Result]:
        """Make a file's calls and yield the result of each check; skip the checks of a format that the server lacks."""
        variables: dict[str, object] = {**file.values, **self.values}
        for name, kind in file.models.items():
            if kind in self.models:
                variables[name] = self.models[kind]
        absent = {name: f"no {kind} model: give one by --model {kind}=ID" for name, kind in file.models.items()}
        unserved = ""
        for number, call in enumerate(file.calls):
            if unserved:
                results = _skipped(file.face, call, unserved)
            else:
                response, results = await self._call(file.face, call, variables, absent)
                if number == 0 and response is not None and response.status in NO_ROUTE and results[0].fails_run:
                    unserved = f"not served: {_target(call.request)} is {response.status}"
            for result in results:
                yield result

    async def _call(
        self, face: str, call: Call, variables: dict[str, object], absent: Mapping[str, str]
    ) -> tuple[CallResponse | None, list[Result]]:
        try:
            request = msgspec.convert(replaced(msgspec.to_builtins(call.request), variables), Request)
        except UnsetError as error:
            cause = absent.get(error.name, f"nothing has the value {error.name}: give it by --set {error.name}=VALUE")
            return None, _skipped(face, call, cause)
        except msgspec.ValidationError as error:
            return None, _skipped(face, call, f"its request is invalid: {error}")
        if request.grpc and self.grpc is None:
            return None, _skipped(face, call, "no gRPC address: give one by --grpc")
        started = asyncio.get_running_loop().time()
        try:
            response = await self._answer(request, call)
        except UnreachableError as error:
            first = _result(face, call, None, str(error), Outcome.FAILED)
            return None, [first, *_skipped(face, call, f"no response of {call.id}")[1:]]
        seconds = asyncio.get_running_loop().time() - started
        results = _checked(face, call, request, response, variables)
        return response, [replace(results[0], seconds=seconds), *results[1:]]

    async def _answer(self, request: Request, call: Call) -> CallResponse:
        caller = self.grpc if request.grpc and self.grpc is not None else self.http
        response = await caller.call(request)
        for _ in range(MAX_REPEATS):
            wait = _wait(response, call)
            if wait is None:
                break
            await asyncio.sleep(wait)
            response = await caller.call(request)
        if call.poll is None:
            return response
        bodies, path = [response.body], response_paths.parse(call.poll.path)
        end = asyncio.get_running_loop().time() + call.poll.seconds
        while response.status in {200, "OK"} and not _reached(response, path, call.poll.until):
            if asyncio.get_running_loop().time() > end:
                raise UnreachableError(f"{_target(request)}: {call.poll.path} is not final in {call.poll.seconds:g} s")
            await asyncio.sleep(call.poll.every)
            response = await caller.call(request)
            bodies.append(response.body)
        return replace(response, polls=bodies)


def _wait(response: CallResponse, call: Call) -> float | None:
    """Return the seconds after which to repeat a call rejected as busy, from `retry-after` or `RetryInfo`."""
    if response.status not in BUSY_STATUSES or response.status in _expected(call):
        return None
    delay = response.headers.get("retry-after", "")
    with suppress(response_paths.AbsentError):  # absent over HTTP
        delay = str(response_paths.find(response.document, RETRY_INFO)[0]).removesuffix("s")
    try:
        seconds = float(delay)
    except ValueError:  # absent, or a date
        return None
    return seconds if 0 <= seconds <= LONGEST_WAIT else None


def _expected(call: Call) -> list[int | str]:
    return call.status if isinstance(call.status, list) else [call.status]


def _reached(response: CallResponse, path: response_paths.Path, until: Sequence[object]) -> bool:
    try:
        return any(value in until for value in response_paths.find(response.document, path))
    except response_paths.AbsentError:
        return False


def _checked(
    face: str, call: Call, request: Request, response: CallResponse, variables: dict[str, object]
) -> list[Result]:
    expected = _expected(call)
    if response.status not in expected:
        wanted = " or ".join(map(str, expected))
        succeeded = response.status == "OK" or str(response.status).startswith("2")
        message = f": {response.message}" if response.message and not succeeded else ""
        problem = f"{_target(request)}: expected status {wanted}, got {response.status}{message}"
        failed = _result(face, call, None, problem, Outcome.FAILED)
        return [failed, *_skipped(face, call, f"the status of {call.id} is {response.status}")[1:]]
    for name, path in call.save.items():
        try:
            variables[name] = response_paths.find(response.document, response_paths.parse(path))[0]
        except (response_paths.AbsentError, IndexError):
            variables.pop(name, None)
    status = _result(face, call, None, "", Outcome.PASSED)
    return [status, *(_check(face, call, check, response, variables) for check in call.checks)]


def _check(face: str, call: Call, check: Check, response: CallResponse, variables: Mapping[str, object]) -> Result:
    for written in check.expect:
        try:
            expectation = msgspec.convert(replaced(msgspec.to_builtins(written), variables), Expectation)
        except UnsetError as error:
            return _result(face, call, check, f"nothing has the value {error.name}", Outcome.SKIPPED)
        problem = expectations.problem(expectation, response)
        if problem is not None:
            return _result(face, call, check, problem, Outcome.FAILED)
    return _result(face, call, check, "", Outcome.PASSED)


def _skipped(face: str, call: Call, cause: str) -> list[Result]:
    return [_result(face, call, check, cause, Outcome.SKIPPED) for check in (None, *call.checks)]


def _result(face: str, call: Call, check: Check | None, problem: str, outcome: Outcome) -> Result:
    if check is None:  # of the status
        return Result(face, f"{call.id}.status", call.severity, call.reason, call.source, outcome, problem)
    severity, source = check.severity or call.severity, check.source or call.source
    return Result(face, f"{call.id}.{check.id}", severity, check.reason, source, outcome, problem)


def _target(request: Request) -> str:
    return request.grpc or f"{request.method} {request.path}"
