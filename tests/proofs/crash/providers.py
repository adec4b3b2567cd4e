"""Providers of the crash test: the strict fakes of all families, which count the submissions of each task by its tag."""

import asyncio
import random
import re
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.providers.server import ReceivedRequest, serve_provider
from tests.support.providers.video_a import VideoObjectProvider
from tests.support.providers.video_b import VERTEX, OperationProvider
from tests.support.providers.video_c import TaskApiProvider
from tests.support.providers.video_d import ContentTaskProvider
from tests.support.providers.video_e import FamilyEProvider
from tests.support.providers.video_f import SignedProvider
from tests.support.providers.video_g import TwoVersionProvider
from tests.support.providers.video_server import Task, VideoProvider
from umg_grpc.v1 import pb

TAG = re.compile(rb"crash-\d+-(?:ok|fail)")
SLOWEST_ANSWER_SECONDS = 0.4


@dataclass(frozen=True)
class Family:
    name: str
    """Name of its channel."""
    protocol: str
    path: str
    model: str
    upstream: str
    provider: type[VideoProvider]
    entry: "pb.VideoEntry.ValueType" = pb.VIDEO_ENTRY_UNIFIED
    parameters: Mapping[str, object] = field(default_factory=dict)
    auth: str = ""
    """Lines of the config with its key."""


FIVE = {"duration_seconds": 5}
SIGNED = "    auth: {kind: access_key}\n    api_key: 'AKEXAMPLE0001:c2VjcmV0LWV4YW1wbGU='\n"
FAMILIES = (
    Family("a", "vidA", "/v1", "vidA-2", "sora-2", VideoObjectProvider, parameters={"duration_seconds": 4}),
    Family("b", "vidB", VERTEX, "vidB-3.1-generate-preview", "veo-3.1", OperationProvider),
    Family("c", "vidC", "", "vidC2.5-t2v-preview", "wan2.5-t2v", TaskApiProvider, parameters=FIVE),
    Family("d", "vidD", "/api/v3", "vidD-2-0-260128", "doubao-seedance-2-0", ContentTaskProvider, pb.VIDEO_ENTRY_D),
    Family("e1", "vidE", "", "vidE-v2-6", "kling-v2-6", FamilyEProvider, pb.VIDEO_ENTRY_E_V1, FIVE),
    Family("e3", "vidE", "", "vidE-3.0", "kling-3.0", FamilyEProvider, pb.VIDEO_ENTRY_E_3, FIVE),
    Family("f", "vidF", "", "vidF_vgfm_t2v_l20", "jimeng_vgfm", SignedProvider, pb.VIDEO_ENTRY_F, auth=SIGNED),
    Family(
        *("g", "vidG", "", "vidG-H3", "MiniMax-H3", TwoVersionProvider, pb.VIDEO_ENTRY_G),
        {"duration_seconds": 5, "resolution": "768P"},
    ),
)


@dataclass
class Counted:
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
async def served(
    counted: Counted, chance: random.Random, families: Sequence[Family] = FAMILIES
) -> AsyncGenerator[str, None]:
    """Serve the providers of the families. Yield the config of their channels."""
    lines = ["channels:"]
    async with AsyncExitStack() as stack:
        for family in families:
            provider = counting(family.provider, counted, chance)
            await stack.enter_async_context(serve_provider(provider))
            auth = family.auth or f"    api_key: {provider.keys[0]}\n"
            lines.append(f"  - name: {family.name}\n    protocols: [{family.protocol}]\n{auth}")
            lines.append(f"    base_url: {provider.url}{family.path}")
            lines.append(f"    models: [{{id: {family.model}, upstream: {family.upstream}}}]")
        lines.append("models:")
        lines += [f"  {family.model}: {{price: {{video: {{any: 1}}}}}}" for family in families]
        yield "\n".join(lines) + "\n"
