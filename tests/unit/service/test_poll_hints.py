"""Hints when to query a task again."""

import pytest

from umg_grpc.service.video_tasks.task_lookup import poll_hints
from umg_grpc.store.table_definitions import MediaTask

CREATED = 1_800_000_000_000_000


@pytest.mark.parametrize(("age", "seconds"), [(-5, 1), (0, 1), (14, 1), (15, 3), (60, 5), (600, 10), (86_400, 10)])
def test_an_older_task_is_to_be_queried_less_often(age: int, seconds: int) -> None:
    hints = poll_hints(MediaTask(create_micros=CREATED), CREATED + age * 1_000_000)
    assert hints == {"openai-poll-after-ms": str(seconds * 1000), "retry-after": str(seconds)}
