"""Code of the present call in the playground: its curl line, run by a shell, makes the call."""

import asyncio
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.gateways import KEY
from tests.world.pages.site import CHAT, IMAGE, VIDEO, Site, no_complaint, text_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Shown:
    """Call that is entered, the path that its code has, and a member of the response."""

    id: str
    kind: str
    model: str
    path: str
    response: str


CASES = [
    Shown("chat", "chat", CHAT, "/v1/chat/completions", "chat.completion.chunk"),
    Shown("count", "count", CHAT, "/umg.v1.GenerationService/CountTokens", "inputTokens"),
    Shown("embed", "embed", "text-embedding-3-small", "/v1/embeddings", "embedding"),
    Shown("rerank", "rerank", "rerank-v1", "/v1/rerank", "relevance_score"),
    Shown("image", "image", IMAGE, "/umg.v1.ImageService/GenerateImage", "images"),
    Shown("video", "video", VIDEO, "/umg.v1.VideoService/CreateVideoTask", "taskId"),
]


def run(line: str, folder: Path) -> str:
    """Run a line in a shell with the key in its environment, and return its output."""
    environment = {**os.environ, "UMG_API_KEY": KEY}
    command = ["bash", "-c", line]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True, text=True).stdout


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_the_curl_line_makes_the_call(site: Site, case: Shown, tmp_path: Path) -> None:
    await site.begin(case.kind)
    with no_complaint(site.page):
        await site.choose(case.model)
        await site.fill("#prompt", 'it\'s a "red" $HOME kite\nover `a` lake')
        if case.kind == "rerank":
            await site.fill("#query", "a kite's colour")
        await site.until_text("#code code", f"curl {site.gateway.url}{case.path}")
        await site.until_text("#code code", "kite")
        line = await site.page.evaluate(text_of("#code code"))
        assert KEY not in line
        printed = await asyncio.to_thread(run, line, tmp_path)
    assert case.response in printed
    if case.kind == "video":
        assert json.loads(printed)["task"]["parameters"]["prompt"].startswith('it\'s a "red" $HOME kite\nover `a`')


async def test_code_has_the_settings_and_can_be_copied(site: Site) -> None:
    await site.begin()
    with no_complaint(site.page):
        await site.choose(CHAT)
        await site.write_system_prompt("be brief")
        await site.fill("#prompt", "hello")
        await site.fill("#settings input", "12")
        await site.until_text("#code code", '"max_completion_tokens": 12')
        for language, part in (
            ("Python", "from openai import OpenAI"),
            ("TypeScript", "new OpenAI("),
            ("gRPC", "umg.v1."),
        ):
            await site.press_button(language, "#code")
            await site.until_text("#code code", part)
        await site.press_button("Copy", "#code")
        await site.until_text("#code [role=status]", "Copied")
        copied = await site.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith('grpcurl -plaintext -H "authorization: Bearer $UMG_API_KEY"')
    assert '"instructions"' in copied
