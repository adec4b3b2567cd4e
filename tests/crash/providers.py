"""Providers of the crash test: the strict fakes of all families, which count the submissions of each task by its tag."""

import asyncio
import random
import re
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.providers.server import ReceivedRequest, serve_provider
from tests.support.providers.video_object import VideoObjectProvider
from tests.support.providers.video_server import Task, VideoProvider
from tests.support.providers.video_task_api import TaskApiProvider
from umg_grpc.v1 import pb

TAG = re.compile(rb"crash-\d+-(?:ok|fail)")
SLOWEST_ANSWER_SECONDS = 0.4


@dataclass(frozen=True)
class Family:
    """Family of models with its provider."""

    protocol: str
    path: str
    model: str
    provider: type[VideoProvider]
    entry: "pb.VideoEntry.ValueType" = pb.VIDEO_ENTRY_UNIFIED
    parameters: Mapping[str, object] = field(default_factory=dict)


FAMILIES = (
    Family("vidA", "/v1", "vidA-2", VideoObjectProvider, parameters={"duration_seconds": 4}),
    Family("vidC", "", "vidC2.5-t2v-preview", TaskApiProvider, parameters={"duration_seconds": 5}),
)


@dataclass
class Counted:
    """Submissions that the providers received."""

    submissions: Counter[str] = field(default_factory=Counter)
    """By tag."""
    accepted: set[str] = field(default_factory=set)
    """Tags of the tasks that a provider has."""


def counting(provider: type[VideoProvider], counted: Counted, chance: random.Random) -> VideoProvider:
    """Return a provider that counts its submissions, answers slowly, and fails the tasks whose tag demands it."""
    tags: dict[str, str] = {}

    class Counting(provider):  # type: ignore[valid-type,misc]  # one subclass for each family
        async def _submit(self, request: web.Request, received: ReceivedRequest, key: str) -> web.StreamResponse:
            found = TAG.search(received.body)
            assert found is not None, received.body[:200]
            tag = found[0].decode()
            counted.submissions[tag] += 1
            known = set(self.tasks)
            response = await super()._submit(request, received, key)
            for task_id in self.tasks.keys() - known:
                tags[task_id] = tag
                counted.accepted.add(tag)
            await asyncio.sleep(chance.uniform(0, SLOWEST_ANSWER_SECONDS))
            return response  # type: ignore[no-any-return]

        def step(self, task: Task) -> str:
            step: str = super().step(task)
            return "failed" if step == "succeeded" and tags[task.id].endswith("-fail") else step

    made: VideoProvider = Counting()
    return made


@asynccontextmanager
async def served(counted: Counted, chance: random.Random) -> AsyncGenerator[str, None]:
    """Serve the providers. Yield the config of their channels."""
    lines = ["channels:"]
    async with AsyncExitStack() as stack:
        for family in FAMILIES:
            provider = counting(family.provider, counted, chance)
            await stack.enter_async_context(serve_provider(provider))
            lines.append(f"  - name: {family.protocol}\n    protocols: [{family.protocol}]")
            lines.append(f"    base_url: {provider.url}{family.path}\n    api_key: {provider.keys[0]}")
            lines.append(f"    models: [{family.model}]")
        lines.append("models:")
        lines += [f"  {family.model}: {{price: {{video: {{any: 1}}}}}}" for family in FAMILIES]
        yield "\n".join(lines) + "\n"
