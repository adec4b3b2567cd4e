"""Settings of the programs, read from `docs/clients.md`: the documented settings are the tested ones."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "clients.md"
ADDRESS = "http://127.0.0.1:8080"
KEY = "$UMG_API_KEY"
FORMATS = {
    "Chat completions": "chat",
    "Responses": "responses",
    "Messages": "messages",
    "Native": "native",
    "Ollama": "ollama_chat",
}
BLOCK = re.compile(r"(?:In `~/(?P<path>[^`]+)`[^\n]*:\n\n)?```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)
MODEL = re.compile(r"\bfam[A-Z]-[\w.-]*\w")


@dataclass(frozen=True)
class Settings:
    program: str  # heading of its section
    format: str
    environment: Mapping[str, str]
    files: Mapping[str, str]  # by the path below the home directory
    command: tuple[str, ...]

    @property
    def model(self) -> str:
        found = set(MODEL.findall(json.dumps([dict(self.environment), dict(self.files), self.command])))
        assert len(found) == 1, f"{self.program}, {self.format}: {sorted(found)}"
        return found.pop()

    def replaced(self, **values: str) -> "Settings":
        """Return the settings with other values for `address`, `key` and `model`."""
        old = {"address": ADDRESS, "key": KEY, "model": self.model}

        def changed(text: str) -> str:
            for name, value in values.items():
                text = text.replace(old[name], value)
            return text

        return replace(
            self,
            environment={name: changed(value) for name, value in self.environment.items()},
            files={path: changed(text) for path, text in self.files.items()},
            command=tuple(changed(word) for word in self.command),
        )

    def at_home(self, home: Path) -> "Settings":
        """Return the settings with a home directory in place of `~` in the command, as a shell expands it."""
        words = (re.sub("^~(?=/)", str(home), word) for word in self.command)
        return replace(self, command=tuple(words))


def settings(page: str) -> list[Settings]:
    return [
        _settings(program, FORMATS[heading], section)
        for program, text in _sections(page, 2)
        for heading, section in _sections(text, 3)
    ]


@dataclass(frozen=True)
class Block:
    """Lines for a library or another program that has no scenarios."""

    language: str
    text: str
    path: str  # file below the home directory that has the lines; "" for lines to run


def libraries(page: str) -> dict[str, list[Block]]:
    """Return the blocks of each section that has no formats."""
    found = {
        name: [Block(each["language"], each["text"], each["path"] or "") for each in BLOCK.finditer(text)]
        for name, text in _sections(page, 2)
        if not _sections(text, 3)
    }
    return {name: blocks for name, blocks in found.items() if blocks}


def documented(name: str, address: str) -> str:
    """Return the lines of the page for a library, with another address."""
    [block] = libraries(PAGE.read_text(encoding="utf-8"))[name]
    assert ADDRESS in block.text
    return block.text.replace(ADDRESS, address)


def _sections(text: str, level: int) -> list[tuple[str, str]]:
    parts = re.split(rf"^{'#' * level} (.+)$", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def _settings(program: str, name: str, section: str) -> Settings:
    environment: dict[str, str] = {}
    files: dict[str, str] = {}
    command: tuple[str, ...] = ()
    for block in BLOCK.finditer(section):
        if block["path"]:
            files[block["path"]] = block["text"]
            continue
        assert block["language"] == "bash", f"{program}, {name}: a block of {block['language']} names no file"
        *exports, line = block["text"].splitlines()
        environment |= dict(export.removeprefix("export ").split("=", 1) for export in exports)
        command = tuple(line.split())
    return Settings(program, name, environment, files, command)
