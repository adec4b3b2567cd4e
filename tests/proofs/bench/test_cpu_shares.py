"""Shares of the processor time: samples by the room of their innermost own function, and the table of the page."""

from pathlib import Path

import pytest

from bench.cpu_shares import DATABASE_ROOM, LOADS, LOOP_ROOM, room_of, shares, table, write

LOOP = "<module> (umg:8);run (umg_grpc/process/gateway_processes.py:90);Runner.run (asyncio/runners.py:118)"
CALL = f"{LOOP};respond (http_facade/dispatcher.py:88);served (umg_grpc/service/pipeline/call_interceptor.py:20)"


def test_a_sample_belongs_to_its_innermost_own_function() -> None:
    assert room_of(LOOP) == LOOP_ROOM
    assert room_of(f"{LOOP};data_received (aiohttp/web_protocol.py:400)") == LOOP_ROOM
    assert room_of(CALL) == "umg_grpc/service/pipeline"
    assert room_of(f"{CALL};decode (umg_grpc/wire/chat/request.py:40);decode (msgspec/json.py:1)") == "umg_grpc/wire"
    assert room_of(f"{LOOP};respond (http_facade/dispatcher.py:88)") == "http_facade/dispatcher.py"


def test_shares_are_those_of_the_time_of_all_threads() -> None:
    waits = "_bootstrap (threading.py:1002);_connection_worker_thread (aiosqlite/core.py:59)"
    found = shares([f"{LOOP} 6", f"{CALL} 3", f"{CALL};wait (asyncio/tasks.py:1) 1", f"{waits} 99"], 6.0, 8.0)
    assert found == pytest.approx({"umg_grpc/service/pipeline": 0.3, LOOP_ROOM: 0.45, DATABASE_ROOM: 0.25})


def test_the_table_is_written_between_the_marks_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- shares of the processor time -->\nold\n<!-- end -->\nafter\n")
    text = table({LOADS[0].title: {"a": 10.0, "b": 20.4, "c": 0.2}, "other": {"a": 1234.0}})
    write(page, text)
    assert page.read_text() == f"before\n<!-- shares of the processor time -->\n{text}\n<!-- end -->\nafter\n"
    assert text.splitlines()[2:] == ["| b | 20 | 0 |", "| a | 10 | 1,234 |", "| **a call** | 31 | 1,234 |"]
