"""Build the website of the documents: `python -m scripts.docs_site` writes its pages into `build/site-pages`, from
which Sphinx makes `build/site`.

The pages are those of `docs/README.md`, whose sections are the navigation, and the generated reference. Links between
them are changed to the paths in the folder; files of the repository that they link to are copied.
"""

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from scripts.reference import (
    commands,
    config_keys,
    error_reasons,
    http_operations,
    log_fields,
    metric_definitions,
    schema,
)

ROOT = Path(__file__).resolve().parents[1]
CONTENTS = "docs/README.md"
GENERATED: Mapping[str, tuple[str, Callable[[], str]]] = {
    "reference/config.md": ("Keys of the config", config_keys.page),
    "reference/commands.md": ("Commands", commands.page),
    "reference/http.md": ("HTTP", http_operations.page),
    "reference/grpc.md": ("gRPC", schema.page),
    "reference/errors.md": ("Reasons of errors", error_reasons.page),
    "reference/metrics.md": ("Metrics", metric_definitions.page),
    "reference/log.md": ("Fields of the log", log_fields.page),
}
"""Path in the folder -> title and text of a generated page. Its links are relative to `docs/reference`."""
GENERATED_SECTION = "Reference"
FOLDERS = {"proto/umg/v1": "docs/reference/grpc.md", "deploy": "docs/deploying.md"}
"""Folders of the repository without a page of their own -> the page about them, if there is one."""
SCREENSHOTS = "docs/screenshots"
"""Folder of the pictures that the tests in a browser write (`make pictures`), and git ignores."""
PICTURES: Mapping[str, Mapping[str, str]] = {
    CONTENTS: {"console-overview": "The console: the last day of a gateway, with one provider that is not paid"},
    "docs/console.md": {
        "console-overview": "Overview",
        "console-requests": "Failed calls",
        "console-request": "The story of a call",
        "console-usage": "Usage by model and by key",
        "console-key": "A key with its budgets",
        "console-new-key": "A new secret, which is shown once",
        "console-projects": "Budgets of projects",
        "console-channels": "Channels",
        "console-me": "The page of the holder of a key",
        "console-overview-phone": "The overview on a phone",
        "console-request-phone": "The story of a call on a phone",
    },
    "docs/pages.md": {
        "playground-chat": "The playground: a conversation",
        "playground-edit": "An image that was edited with a mask",
        "playground-video": "Video tasks",
        "playground-phone": "The playground on a phone",
        "docs": "The API reference: an operation",
        "phone-docs": "The API reference on a phone",
    },
}
"""Page -> name of a picture -> its caption. `NAME-dark` is the same in dark colours, where it exists."""
NO_PICTURES = ROOT / "docs" / "no-pictures"
"""Folder that does not exist."""
PAGES, SITE = ROOT / "build" / "site-pages", ROOT / "build" / "site"
"""Folders of the website."""
DIGEST = "sources.sha256"
"""File of the website with the digest of its sources."""
PACKAGES = ("sphinx", "myst-parser", "furo")
SCHEMES = {"light": "", "dark": "-dark"}
"""Colours of the website -> end of the names of the pictures in them."""
STYLE = """.main { min-width: 0; }
.main > .content { box-sizing: border-box; flex: 1; min-width: 0; width: auto; max-width: 66em; }
.main > .toc-drawer { flex: none; }
table.docutils { font-size: var(--font-size--small--2); display: block; overflow-x: auto; }
"""

SEARCHED_AS: Mapping[str, str] = {
    "docs/recipes/corporate-proxy.md": "firewall network tunnel certificate authority ca bundle https_proxy",
    "docs/recipes/entra-id.md": "active directory aad microsoft managed identity login azure openai",
    "docs/recipes/entra-id-tokens.md": "active directory aad microsoft sso single sign-on oidc openid jwt login azure",
    "docs/recipes/fallback.md": "failover backup outage down another switch",
    "docs/recipes/guards.md": "credit card pii dlp redact anonymize privacy filter moderation",
    "docs/recipes/langfuse.md": "tracing observability opentelemetry monitoring",
    "docs/recipes/open-webui.md": "chat interface browser ui",
    "docs/recipes/prices.md": "cost how much expensive dollar credits",
    "docs/recipes/refused-calls.md": "error denied rejected failed 400 401 403 404 429 503 wrong key does not work",
    "docs/recipes/rotate-keys.md": "secret change replace revoke renew leaked api",
    "docs/recipes/several-processes.md": "workers replicas scale cluster high availability postgresql machines",
    "docs/recipes/team-budgets.md": "spend limit quota cost department project user",
    "docs/recipes/video-callbacks.md": "webhook hmac notification verify",
    "docs/prompt-caches.md": "caching cached tokens cache_control",
}
"""Page -> words of questions that it answers and does not contain. The search of the website finds it by them."""
LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")
"""Text, path and anchor of a link to a file."""
FENCE = re.compile(r"^(?: {0,3})```.*?^ {0,3}```[^\n]*$", re.DOTALL | re.MULTILINE)
NO_NAVIGATION = "---\norphan: true\n---\n\n"
"""Mark of a page that is not in the navigation."""
BULLET = re.compile(r"^- \[([^\]]+)\]\(([^)]+)\)", re.MULTILINE)


def sections() -> dict[str, dict[str, str]]:
    """Return the titles of the pages of each section of the navigation, by their paths in the repository."""
    text = (ROOT / CONTENTS).read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return {
        section: {normpath(f"docs/{target}"): title for title, target in bullets}
        for section, body in zip(parts[::2], parts[1::2], strict=True)
        if (bullets := BULLET.findall(body))
    }


def place(path: str) -> str:
    """Return the path that a file of the repository has in the folder of the website."""
    if path == CONTENTS:
        return "index.md"
    return path.removeprefix("docs/") if path.startswith("docs/") else f"repository/{path}"


def page_of(path: str) -> str:
    """Return the page that a link to a path of the repository opens; for a folder its README."""
    if (ROOT / path / "README.md").is_file():
        return f"{path}/README.md"
    about = FOLDERS.get(path, path)
    return about if about.removeprefix("docs/") in GENERATED or (ROOT / about).exists() else path


def linked(text: str, path: str) -> str:
    """Return the text of a page, with its links as they are in the folder of the website. `path`: the page's path in
    the repository.
    """
    folder = str(PurePosixPath(path).parent)

    def link(found: re.Match[str]) -> str:
        target = page_of(normpath(f"{folder}/{found[2]}"))
        if (ROOT / target).is_dir():
            return found[1]
        to = relpath(place(target), str(PurePosixPath(place(path)).parent))
        return f"[{found[1]}]({to}{found[3] or ''})"

    return "".join(part if is_code else LINK.sub(link, part) for is_code, part in _parts(text))


def targets(text: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield (path in the repository, anchor) of each link of a page to a file."""
    for is_code, part in _parts(text):
        for found in LINK.finditer("" if is_code else part):
            yield normpath(f"{PurePosixPath(path).parent}/{found[2]}"), (found[3] or "")[1:]


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the parts of a text as (whether the part is a block of code, part)."""
    end = 0
    for fence in FENCE.finditer(text):
        yield False, text[end : fence.start()]
        yield True, fence[0]
        end = fence.end()
    yield False, text[end:]


def index(screenshots: Path = ROOT / SCREENSHOTS) -> str:
    """Return the first page: the contents, with the navigation. `screenshots`: folder of its pictures."""
    text = linked((ROOT / CONTENTS).read_text(encoding="utf-8"), CONTENTS)
    text = text.replace("\n## ", f"\n{pictures(CONTENTS, screenshots)}\n## ", 1)
    generated = "".join(f"- [{title}]({path})\n" for path, (title, _) in GENERATED.items())
    for section, paths in sections().items():
        pages = [f"{title} <{place(path)}>" for path, title in paths.items()]
        if section == GENERATED_SECTION:
            text = re.sub(rf"(^## {section}\n\n)", rf"\1{generated}", text, flags=re.MULTILINE)
            pages = [*GENERATED, *pages]
        text += f"\n```{{toctree}}\n:hidden:\n:caption: {section}\n\n" + "\n".join(pages) + "\n```\n"
    return text


def pictures(path: str, folder: Path = ROOT / SCREENSHOTS) -> str:
    """Return the pictures of a page that a folder has, each in the colours of the page; "" without any."""
    shown = list[str]()
    for name, caption in PICTURES.get(path, {}).items():
        found = {
            scheme: f"{name}{end}.png" for scheme, end in SCHEMES.items() if (folder / f"{name}{end}.png").exists()
        }
        if found:
            shown.append(f"**{caption}**\n")
        for scheme, file in found.items():
            shown_in = f":class: only-{scheme}\n" if len(found) > 1 else ""
            shown.append(f"```{{image}} screenshots/{file}\n:alt: {caption}\n{shown_in}```\n")
    return "\n".join(shown)


def pages(screenshots: Path = ROOT / SCREENSHOTS) -> dict[str, str]:
    """Return the text of each page by its path in the repository: generated pages in `docs/reference`, the pages of the
    navigation, and the pages that these link to, which are marked. `screenshots`: folder of their pictures.
    """
    made = {f"docs/{path}": text() for path, (_, text) in GENERATED.items()}
    waiting = [(path, "") for paths in sections().values() for path in paths]
    for path, mark in waiting:
        text = (ROOT / path).read_text(encoding="utf-8")
        if shown := pictures(path, screenshots):
            text += f"\n## Pictures\n\n{shown}"
        made[path] = mark + _searched_as(path) + text
        below = {page for target, _ in targets(text, path) if (page := page_of(target)).endswith(".md")}
        known = {CONTENTS, *made, *(other for other, _ in waiting)}
        waiting += [(page, NO_NAVIGATION) for page in sorted(below - known)]
    return made


def _searched_as(path: str) -> str:
    """Return the front matter of a page by which the search finds it; "" for a page without words of its own."""
    words = ", ".join(SEARCHED_AS.get(path, "").split())
    return f'---\nmyst: {{html_meta: {{keywords: "{words}"}}}}\n---\n\n' if words else ""


def sources(screenshots: Path = ROOT / SCREENSHOTS) -> dict[str, bytes]:
    """Return the pages, and all files that they link to, by their paths. `screenshots`: folder of their pictures."""
    made = pages(screenshots)
    files = {place(path): linked(text, path).encode() for path, text in made.items()}
    files |= {"index.md": index(screenshots).encode(), "_static/wide.css": STYLE.encode()}
    files |= {name: (ROOT / "docs" / name).read_bytes() for name in ("conf.py", "search_scorer.js")}
    for path, text in made.items():
        for target, _ in targets(text, path):
            page = page_of(target)
            if page not in made and (ROOT / page).is_file() and page != CONTENTS:
                files[place(page)] = (ROOT / page).read_bytes()
    return files | {f"screenshots/{each.name}": each.read_bytes() for each in screenshots.glob("*.png")}


def digest() -> str:
    """Return the digest of all that makes the website, except for its pictures, which tests write again."""
    parts = {**sources(NO_PICTURES), "command": Path(__file__).read_bytes()}
    parts |= {name: version(name).encode() for name in PACKAGES}
    return hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()


def write(folder: Path) -> None:
    """Write the pages, and all files that they link to, into a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in sources().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def build(pages: Path, site: Path) -> None:
    """Write the pages into a folder, and build the website of them in another by Sphinx; a warning is an error."""
    shutil.rmtree(site, ignore_errors=True)
    made_of = digest()
    write(pages)
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "--builder", "html"]
    subprocess.run([*command, pages, site], check=True)
    (site / DIGEST).write_text(made_of, encoding="utf-8")


def is_current(site: Path) -> bool:
    """Return whether a folder has the website of the present sources, with any pictures."""
    made = site / DIGEST
    return made.is_file() and made.read_text(encoding="utf-8") == digest()


if __name__ == "__main__":
    build(PAGES, SITE)
