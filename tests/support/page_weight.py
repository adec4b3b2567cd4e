"""Weight of a page: the files that a browser without a cache is sent for it, by its HTML and the imports of its modules."""

import re
from dataclasses import dataclass
from urllib.parse import urljoin

import aiohttp

PARTS = re.compile(r'<(?:link|script|img)\b[^>]*?(?:href|src)="([^"]+)"')
IMPORTS = re.compile(r'^(?:import|export)\b[^;]*?"(\.[^"]+\.js)"', re.MULTILINE)


@dataclass(frozen=True)
class SentFile:
    path: str
    size: int
    """Bytes of the body and the headers, as they were sent."""
    cache_control: str


async def sent_files(session: aiohttp.ClientSession, path: str) -> list[SentFile]:
    """Return the page and all files that a browser loads with it."""
    found, waiting = dict[str, SentFile](), [path]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        async with session.get(name, headers={"accept-encoding": "gzip"}) as response:
            assert response.status == 200, name
            text = await response.text()
            heads = sum(len(key) + len(value) + 4 for key, value in response.raw_headers)
            size = int(response.headers["content-length"]) + heads
            found[name] = SentFile(name, size, response.headers["cache-control"])
        pattern = PARTS if response.content_type == "text/html" else IMPORTS if name.endswith(".js") else None
        waiting += [urljoin(name, each) for each in pattern.findall(text)] if pattern else []
    return list(found.values())
