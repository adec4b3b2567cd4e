"""Long sessions of Codex: with its own provider `openai` at the gateway it compacts by `compaction_trigger`, and with a
provider of another name by an ordinary call.
"""

import json
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from tests.pairs.table import strict_fake
from tests.support.gateways import running
from tests.support.providers.scenarios import Answer, ScenarioRequest
from tests.support.providers.server import Json, ReceivedRequest, serve_provider
from tests.support.providers.strict_providers import KEY, Provider
from tests.world.agents import model
from tests.world.agents.document import ADDRESS, Settings
from tests.world.agents.document import KEY as DOCUMENTED_KEY
from tests.world.agents.install import Installed
from tests.world.agents.programs import BY_NAME
from tests.world.agents.recorder import recording
from tests.world.agents.run import Case, worked
from tests.world.agents.scenarios import BY_NAME as SCENARIO
from tests.world.agents.scenarios import FILE, MAX_REQUESTS, WORD, Finished
from umg_grpc.service.operations.generate.conversation_compaction import COMPACTION_REQUEST

CODEX = BY_NAME["Codex"]
TRIGGER = "compaction_trigger"
LIMIT = 30  # tokens, fewer than the first answer has
SUMMARY = "The word is pangolin, and it is in out.txt."
CONFIG = f"""\
model = "famO-5"
model_auto_compact_token_limit = {LIMIT}
web_search = "disabled"
"""
BUILT_IN = f"""\
{CONFIG}openai_base_url = "{ADDRESS}/v1"
"""
OTHER = f"""\
{CONFIG}model_provider = "umg"

[model_providers.umg]
name = "umg"
base_url = "{ADDRESS}/v1"
env_key = "UMG_API_KEY"
wire_api = "responses"
"""
OWN_REQUEST = "handoff summary"
"""Words of the turn by which Codex itself requests a summary."""


def summarizing(request: ScenarioRequest) -> Answer:
    """Return the next step of a model that writes the file by a tool, and a summary when a turn requests one."""
    users = [text for role, text in request.turns if role == "user"]
    if COMPACTION_REQUEST in users[-1] or OWN_REQUEST in users[-1]:
        return Answer(words=(SUMMARY,))
    if any(SUMMARY in text for text in users):
        return Answer(words=(model.DONE,))
    answer = model.answer_to(request)
    assert isinstance(answer, Answer)
    return answer


@dataclass
class Compacting(Provider):
    """Provider of responses that compacts conversations itself, as OpenAI does."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        items = received.json["input"]
        if any(item.get("type") == "compaction" for item in items):
            self.model = lambda _: Answer(words=(model.DONE,))  # it reads its own summary
        if items[-1] != {"type": TRIGGER}:
            return await super().answer(request, received)
        item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "c2VhbGVkIGJ5IHRoZSB2ZW5kb3I="}
        head = {"id": "resp_c", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
        done = head | {"output": [item], "usage": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}}
        events = [
            {"type": "response.created", "response": head | {"status": "in_progress", "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        ]
        frames = [
            f"event: {event['type']}\ndata: {json.dumps(event | {'sequence_number': number})}\n\n"
            for number, event in enumerate(events)
        ]
        return web.Response(body="".join(frames).encode(), content_type="text/event-stream")


@dataclass(frozen=True)
class Session:
    id: str
    upstream: str  # format of the provider
    config: str = BUILT_IN
    native: bool = False  # whether the provider compacts conversations itself

    @property
    def settings(self) -> Settings:
        environment = {"CODEX_API_KEY": DOCUMENTED_KEY, "OPENAI_API_KEY": DOCUMENTED_KEY}
        return Settings("Codex", "responses", environment, {".codex/config.toml": self.config}, ("codex",))

    def provider(self) -> Provider:
        if self.native:
            return Compacting(strict_fake(self.upstream)(), model=summarizing)
        return Provider(strict_fake(self.upstream)(), model=summarizing)


SESSIONS = (
    Session("on a chat provider", "chat"),
    Session("on a messages provider", "messages"),
    Session("on a native provider", "native"),
    Session("on a provider of responses that compacts nothing", "responses"),
    Session("on a provider of responses that compacts itself", "responses", native=True),
    Session("by its own call, with a provider of another name", "chat", config=OTHER),
)
FEW = (SESSIONS[0], SESSIONS[4])
"""Sessions that CI runs."""


async def problems_of(session: Session, programs: Installed, data: Path) -> list[str]:
    """Run Codex in an empty directory. Return its problems, an empty list for a session that ended its work."""
    finished, sent, refusals = await run_session(session, programs, data)
    kinds = [[item.get("type") for item in body["input"]] for body in sent]
    written = finished.folder / FILE
    checks = {
        f"exit status {finished.status}: {finished.printed[-500:]}": finished.status == 0,
        f"{FILE} does not have the word": written.exists() and written.read_text() == WORD,
        "the last answer was not printed": model.DONE in finished.printed,
        f"the provider refused: {refusals}": not refusals,
    }
    triggered = [at for at, types in enumerate(kinds) if TRIGGER in types]
    if session.config == OTHER:
        checks["a trigger was sent"] = not triggered
        checks["no turn requested a summary"] = any(OWN_REQUEST in str(body["input"][-1]) for body in sent)
    else:
        after = kinds[triggered[0] + 1] if triggered and triggered[0] + 1 < len(kinds) else []
        checks["the session did not go on from one summary"] = after.count("compaction") == 1
        checks["calls were sent beside the summary"] = "function_call" not in after
    return [problem for problem, holds in checks.items() if not holds]


async def run_session(session: Session, programs: Installed, data: Path) -> tuple[Finished, list[Json], list[str]]:
    """Run Codex. Return its run, its requests, and the refusals of the provider."""
    case = Case(CODEX, session.settings, SCENARIO["file"], session.upstream)
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(serve_provider(session.provider()))
        config = (
            f"channels:\n  - name: main\n    protocols: [{session.upstream}]\n    base_url: {provider.base_url}\n"
            f"    api_key: {KEY}\n    models: [{{id: famO-5, upstream: m}}]\n"
            f"    quirks: {{compaction: {str(session.native).lower()}}}\n"
        )
        gateway = await stack.enter_async_context(running(config, data / "gateway"))
        recorder = await stack.enter_async_context(recording(gateway.url, MAX_REQUESTS))
        finished = await worked(case, programs, data, recorder)
        sent = [json.loads(each.body) for each in recorder.exchanges if each.path == "/v1/responses" and each.body]
        return finished, sent, provider.refusals
