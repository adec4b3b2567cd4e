"""Settings of the programs for the long task, in addition to those of `docs/clients.md`: a compaction within its length."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.world.agents import programs
from tests.world.agents.document import Settings
from tests.world.agents.programs import Program


@dataclass(frozen=True)
class LongRunning:
    """Program with the settings by which users of long sessions select when it compacts a conversation."""

    program: Program
    pictures: bool = True
    """Whether its tools read pictures."""
    environment: Mapping[str, str] = field(default_factory=dict)
    json: Mapping[str, Any] = field(default_factory=dict)
    """Path of a JSON file below the home directory -> members that are merged into it."""
    lines: Mapping[str, str] = field(default_factory=dict)
    """Path of a file below the home directory -> lines behind those of the page."""
    options: tuple[str, ...] = ()
    """In front of its other options."""
    beside: tuple[str, ...] = ()
    """Ids of models that it requests for summaries."""
    ends_with_summary: bool = False
    """Whether its next prompt ends with the summary as the model's turn: a provider gets a turn of the user behind it,
    which the later prompts do not have.
    """
    stages: int = 1
    """Stages of the task: some programs compact a conversation only at the beginning of a turn of the user."""
    model: str = ""
    """Another id than that of the page's settings."""

    @property
    def selected(self) -> Program:
        return replace(self.program, options=(*self.options, *self.program.options))

    def settings(self, usual: Settings) -> Settings:
        """Return the settings of the page with those of long sessions."""
        files = dict(usual.files)
        for path, members in self.json.items():
            files[path] = json.dumps(_merged(json.loads(files.get(path, "{}")), members))
        for path, lines in self.lines.items():
            files[path] += lines
        return replace(usual, environment={**usual.environment, **self.environment}, files=files)


def _merged(one: Any, other: Any) -> Any:
    if not (isinstance(one, dict) and isinstance(other, Mapping)):
        return other
    return one | {name: _merged(one.get(name), value) for name, value in other.items()}


LONG_RUNNING = (
    LongRunning(programs.BY_NAME["Claude Code"], environment={"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}),
    LongRunning(programs.BY_NAME["Codex"], options=("-c", "model_auto_compact_token_limit=60000")),
    LongRunning(
        programs.BY_NAME["Gemini CLI"],
        json={".gemini/settings.json": {"model": {"compressionThreshold": 0.05, "skipNextSpeakerCheck": False}}},
        model="gemini-2.5-pro",
        stages=2,
        beside=("gemini-3-flash-preview", "gemini-3.1-pro-preview-customtools"),
    ),
    LongRunning(
        programs.BY_NAME["opencode"],
        json={
            ".config/opencode/opencode.json": {
                "provider": {"umg": {"models": {"famX-4": {"limit": {"context": 64000, "output": 8000}}}}}
            }
        },
    ),
    LongRunning(
        programs.BY_NAME["Qwen Code"],
        model=programs.BY_NAME["Qwen Code"].sees,
        json={".qwen/settings.json": {"context": {"autoCompactThreshold": 0.3}}},
    ),
    LongRunning(
        programs.BY_NAME["Continue"],
        ends_with_summary=True,
        pictures=False,
        lines={".continue/config.yaml": "    defaultCompletionOptions: {contextLength: 64000}\n"},
    ),
)
BY_NAME = {each.program.name: each for each in LONG_RUNNING}
