"""Lines of the log that the event loop and a thread write at the same time."""

import threading
from collections.abc import Generator
from io import BytesIO

import msgspec
import pytest
import structlog

from umg_grpc.base import gateway_log


class Line(msgspec.Struct, omit_defaults=True):
    call: int


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Generator[BytesIO, None, None]:
    """Yield the file that the log writes to. Whenever a line gets its time, a thread writes a warning first."""
    file, before = BytesIO(), structlog.get_config()
    writer, now = gateway_log.LineWriter(file), gateway_log.Timestamper.now

    def warn_before(timestamper: gateway_log.Timestamper) -> str:
        thread = threading.Thread(target=writer.warning, args=(b"warned",))
        thread.start()
        thread.join()
        return now(timestamper)

    monkeypatch.setattr(gateway_log.Timestamper, "now", warn_before)
    structlog.configure(logger_factory=writer, wrapper_class=structlog.make_filtering_bound_logger("info"))
    yield file
    structlog.configure(**before)


async def test_each_line_of_a_call_is_written_beside_a_thread_that_writes_too(written: BytesIO) -> None:
    log, batches = gateway_log.line_logger("call"), list[int]()
    writer = structlog.get_config()["logger_factory"]
    writer.begin_batch = lambda: batches.append(len(writer.buffer))
    log(Line(1))
    log(Line(2))
    assert batches == [3, 3], "each line is the first of its batch, since the warning before it has ended the other"
    writer.flush()
    events = [line.partition(b'"event":')[2] or line for line in written.getvalue().splitlines()]
    assert events == [b"warned", b'"call","call":1}', b"warned", b'"call","call":2}']
