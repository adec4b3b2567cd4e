"""Growth of each list and object of the golden bodies, and of each event of the golden streams: lines of Python grow
with it.

A dimension that several samples share is tried once, in the shortest of them: the lines for the rest of a sample, which
does not grow, are also counted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.proofs.linear.cost import Making, Work, line_growth
from tests.proofs.linear.growth import Growth, event_growths, growths
from tests.proofs.linear.work import MODEL, accepting, decode, encode, nothing
from tests.unit.wire.streams import decoded
from tests.unit.wire.test_golden import CASES, Case
from tests.unit.wire.test_golden_of_callers import CASES as CASES_OF_CALLERS
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.text_format_interface import TextFace, TextFormat

Operation = Callable[[bytes], Work]


@dataclass(frozen=True)
class Sample:
    id: str
    growth: Growth
    operations: tuple[Operation, ...]


def of_request(codec: TextFace) -> tuple[Operation, ...]:
    def decoding(body: bytes) -> Work:
        return accepting(lambda: codec.decode_request(body, {}))

    def unknown(body: bytes) -> Work:
        fields = codec.unknown_fields
        return nothing if fields is None else accepting(lambda: fields(body))

    def translating(body: bytes) -> Work:
        try:
            request = codec.decode_request(body, {}).canonical
        except UmgError:
            return nothing
        request.model = MODEL

        def call() -> None:
            for target in TEXT_FORMATS.values():
                accepting(lambda to=target: to.encode_request(request, MODEL, False))()

        return call

    return decoding, unknown, translating


def of_answer(codec: TextFormat, request: pb.GenerateRequest) -> tuple[Operation, ...]:
    def decoding(body: bytes) -> Work:
        return accepting(lambda: [codec.decode_response(body, request, pass_) for pass_ in (False, True)])

    def translating(body: bytes) -> Work:
        try:
            answer = codec.decode_response(body, request, False)
        except UmgError:
            return nothing

        def call() -> None:
            for target in TEXT_FORMATS.values():
                accepting(lambda to=target: to.encode_response(answer, request))()
                accepting(lambda to=target: encode(to.stream_encoder, request, [response_to_events(answer)]))()

        return call

    return decoding, translating


def of_stream(codec: TextFormat, request: pb.GenerateRequest) -> tuple[Operation, ...]:
    def decoding(frames: bytes) -> Work:
        return accepting(lambda: [decode(codec, request, frames, pass_=pass_) for pass_ in (False, True)])

    def translating(frames: bytes) -> Work:
        try:
            messages = decoded(codec, [frames], request)
        except UmgError:
            return nothing

        def call() -> None:
            for target in TEXT_FORMATS.values():
                accepting(lambda to=target: encode(to.stream_encoder, request, messages))()

        return call

    return decoding, translating


KINDS: dict[str, tuple[Callable[[bytes], Iterator[Growth]], Callable[[Case], tuple[Operation, ...]]]] = {
    "request.json": (growths, lambda case: of_request(case.codec)),
    "response.json": (growths, lambda case: of_answer(case.codec, case.request())),
    "stream.sse": (event_growths, lambda case: of_stream(case.codec, case.request())),
}
"""Name of a golden file -> the dimensions of its content, and the operations on it."""


def _samples() -> Iterator[Sample]:
    for name, (grow, operations) in KINDS.items():
        seen = set[str]()
        for case in sorted((case for case in CASES if case.has(name)), key=lambda case: len(case.read(name))):
            for growth in grow(case.read(name)):
                if (key := f"{case.codec.name} {name}: {growth.id}") not in seen:
                    seen.add(key)
                    yield Sample(key, growth, operations(case))
    keys = set[str]()
    for caller in sorted(CASES_OF_CALLERS, key=lambda case: len(case.body)):
        for growth in growths(caller.body):
            if (key := f"{caller.face.name} request.json: {growth.id}") not in keys:
                keys.add(key)
                yield Sample(key, growth, of_request(caller.face))


SAMPLES = list(_samples())
GROUPS = sorted({sample.id.partition(":")[0] for sample in SAMPLES})


@pytest.mark.parametrize("group", GROUPS)
def test_lines_of_python_grow_in_proportion_to_a_golden_body(group: str) -> None:
    complaints = [
        f"{sample.id}, {operation.__name__}: {complaint}"
        for sample in SAMPLES
        if sample.id.startswith(f"{group}:")
        for operation in sample.operations
        if (complaint := line_growth(_making(sample.growth, operation), sample.growth.smallest))
    ]
    assert not complaints


def _making(growth: Growth, operation: Operation) -> Making:
    return lambda size: operation(growth.document(size))
