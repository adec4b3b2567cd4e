"""Repeated log lines: the first event at once, and later ones in one line with their number."""

from collections.abc import Callable

from structlog.testing import capture_logs

from umg_grpc.store.repeated_log_lines import LINE_SECONDS, RepeatedLines


class Timer:
    """Timer whose time a test lets pass."""

    def __init__(self) -> None:
        self.waiting = list[Callable[[], None]]()

    def __call__(self, seconds: float, function: Callable[[], None]) -> None:
        assert seconds == LINE_SECONDS
        self.waiting.append(function)

    def pass_a_second(self) -> None:
        waiting, self.waiting = self.waiting, []
        for function in waiting:
            function()


def test_of_many_events_the_first_is_logged_and_the_others_are_counted() -> None:
    timer = Timer()
    lines = RepeatedLines("test", timer)
    with capture_logs() as logged:
        for number in range(1600):
            lines.warning("it fails", reason=f"reason {number}")
        lines.warning("another event")
        timer.pass_a_second()
        lines.warning("it fails", reason="later")
        timer.pass_a_second()
        timer.pass_a_second()
    assert [(line["event"], line.get("reason"), line.get("repeated")) for line in logged] == [
        ("it fails", "reason 0", None),
        ("another event", None, None),
        ("it fails", "reason 1599", 1599),
        ("it fails", "later", 1),
    ]
    assert timer.waiting == []


def test_an_event_that_occurs_again_later_is_logged_at_once() -> None:
    timer = Timer()
    lines = RepeatedLines("test", timer)
    with capture_logs() as logged:
        lines.warning("it fails")
        timer.pass_a_second()
        lines.warning("it fails")
    assert [line["event"] for line in logged] == ["it fails"] * 2
    assert not any("repeated" in line for line in logged)
