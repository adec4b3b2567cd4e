"""A caller of a gateway, and the tables of a page."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientSession

from tests.processes import Served

DOCS = Path(__file__).parents[2] / "docs"


def rows(page: str, title: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    [found] = re.findall(rf"\n## {title}\n(.*?)(?=\n## |\Z)", page, re.DOTALL)
    lines = [line for line in found.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def quoted(text: str) -> list[str]:
    """What stands between backticks."""
    return re.findall(r"`([^`]+)`", text)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Caller:
    """Whoever has a key of the gateway."""

    served: Served
    session: ClientSession

    async def __call__(self, path: str, body: Any = None, **headers: str) -> Answer:
        """POST with a body, GET without. Underscores in the names of headers are hyphens."""
        sent = {"authorization": f"Bearer {self.served.key}"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        method = "GET" if body is None else "POST"
        async with self.session.request(method, self.served.http + path, json=body, headers=sent) as answer:
            told = await answer.read()
            lower = {name.lower(): value for name, value in answer.headers.items()}
            return Answer(answer.status, lower, json.loads(told) if told else None)
