"""Compaction of a conversation, by a command of the user or by the program itself: the next turn goes on with the
summary.
"""

from dataclasses import dataclass, replace

from tests.pairs.table import TEXT_PROVIDERS
from tests.world.agents import model
from tests.world.agents.document import Settings
from tests.world.agents.endurance.programs import LongRunning
from tests.world.agents.programs import BY_NAME, Program
from tests.world.agents.run import Case
from tests.world.agents.scenarios import COMPACTED


@dataclass(frozen=True)
class Compacting:
    """Program with the settings by which it compacts the conversation of the scenario."""

    running: LongRunning
    command: str = ""
    """Prompt that requests the summary; empty for a program that compacts a full conversation itself."""

    def case(self, usual: Settings, upstream: str) -> Case:
        """Return the case with a provider. `usual`: settings of the page."""
        prompts = (COMPACTED.prompts[0], *filter(None, (self.command,)), model.RECALL)
        return Case(self.running.program, self.running.settings(usual), replace(COMPACTED, prompts=prompts), upstream)


COMPACTING = (
    Compacting(LongRunning(BY_NAME["Claude Code"]), "/compact"),
    Compacting(
        LongRunning(BY_NAME["Gemini CLI"], json={".gemini/settings.json": {"model": {"compressionThreshold": 1e-7}}})
    ),
    Compacting(
        LongRunning(
            BY_NAME["opencode"],
            json={
                ".config/opencode/opencode.json": {
                    "provider": {"umg": {"models": {"famX-4": {"limit": {"context": 200_000, "output": 10_000}}}}}
                }
            },
        )
    ),
    Compacting(LongRunning(BY_NAME["Qwen Code"]), "/compress"),
)
ELSEWHERE = {"Claude Code": "chat", "Gemini CLI": "messages"}
"""Program that CI runs -> format of the provider."""


def compactions(program: Program, usual: Settings) -> list[Case]:
    """Return the compactions of a program, with a provider of each format. `usual`: its settings of the page."""
    return [
        each.case(usual, upstream)
        for each in COMPACTING
        if each.running.program is program
        for upstream in TEXT_PROVIDERS
    ]
