"""Options with which each program runs without a terminal, in addition to the settings of `docs/clients.md`."""

from dataclasses import dataclass

PROMPT, PICTURE = "{prompt}", "{picture}"  # placeholders in the options


@dataclass(frozen=True)
class Program:
    """Program, by its heading in the document.

    A prompt that is to show a picture names it, unless the options attach it; then the program reads it by its own
    tool.
    """

    name: str
    package: str  # in `versions`
    options: tuple[str, ...]  # of one run that may change files
    again: tuple[str, ...] = ()  # of a run that continues the conversation, in place of `options`
    subcommand: tuple[str, ...] = ()  # directly behind the name of the program
    attach: tuple[str, ...] = ()  # behind the options, to attach the picture
    mention: str = ""  # behind the prompt, to attach the picture
    sees: str = ""  # id of a model that the program takes for one that sees; empty: any
    beside: tuple[str, ...] = ()  # ids that it requests in addition to the given one
    by_text: bool = False  # it has no tools, and reads the changes of files from the text of the response
    not_found: str = ""  # its own message for an unknown model, with `{model}`; empty: it shows the gateway's
    returns_reasoning: bool = True  # in chat, which the provider needs beside results of tools
    pictures: bool = True  # it attaches pictures without a terminal
    status: bool = True  # its exit status shows whether it failed
    known_ids: tuple[str, ...] = ()  # ids for which its requests differ from those for an unknown id


PROGRAMS = (
    Program(
        "Claude Code",
        "@anthropic-ai/claude-code",
        ("--permission-mode", "acceptEdits", "-p", PROMPT),
        again=("--continue", "-p", PROMPT),
        not_found="There's an issue with the selected model ({model}).",
        known_ids=("claude-sonnet-4-5", "claude-opus-5"),
    ),
    Program(
        "Codex",
        "@openai/codex",
        ("exec", "--skip-git-repo-check", "--sandbox", "workspace-write", PROMPT),
        again=("exec", "resume", "--last", "--skip-git-repo-check", PROMPT),
        attach=("--image", PICTURE),
        known_ids=("gpt-5.5", "gpt-6.1-sol"),
    ),
    Program(
        "Gemini CLI",
        "@google/gemini-cli",
        ("--skip-trust", "--approval-mode", "auto_edit", "--prompt", PROMPT),
        again=("--skip-trust", "--resume", "latest", "--prompt", PROMPT),
        mention=" @picture.png",
        known_ids=("gemini-2.5-pro", "gemini-3-pro"),
    ),
    Program(
        "opencode",
        "opencode-ai",
        (PROMPT,),
        again=("--continue", PROMPT),
        subcommand=("run",),
        attach=("--file", PICTURE),
    ),
    Program(
        "Qwen Code",
        "@qwen-code/qwen-code",
        ("--approval-mode", "auto-edit", "-p", PROMPT),
        again=("--continue", "-p", PROMPT),
        mention=" @picture.png",
        sees="qwen3-vl-plus",
        known_ids=("qwen3-coder-plus",),
    ),
    Program(
        "aider",
        "aider-chat",
        ("--yes-always", "--message", PROMPT),
        again=("--yes-always", "--restore-chat-history", "--message", PROMPT),
        attach=(PICTURE,),
        sees="gpt-4o",
        beside=("gpt-4o-mini",),
        by_text=True,
        status=False,
        known_ids=("gpt-4o",),
    ),
    Program(
        "Continue",
        "@continuedev/cli",
        ("--auto", "-p", PROMPT),
        again=("--auto", "--resume", "-p", PROMPT),
        returns_reasoning=False,
        pictures=False,
    ),
)
BY_NAME = {program.name: program for program in PROGRAMS}
