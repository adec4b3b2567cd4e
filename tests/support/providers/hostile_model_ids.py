"""Model ids of a hostile provider: every character that a shell, a language, a terminal or a log reads as syntax."""

from dataclasses import dataclass

RUN = "touch ran"
"""Command that leaves a file in the current folder."""
SERVED = "it's'$(touch${IFS}ran)'`touch${IFS}ran`\"\\'!&%\u202e\u200b\x9b"
"""Id without spaces, as the gateway serves it from a provider's list."""


@dataclass(frozen=True)
class HostileId:
    """Model id, and a name of its trick."""

    id: str
    model: str


HOSTILE_IDS = (
    HostileId("a single quote", f"it's'; {RUN}; '"),
    HostileId("a double quote", f'a"; {RUN}; "'),
    HostileId("a backslash before a quote, which fish escapes", f"a\\'; {RUN}; #"),
    HostileId("a backslash at the end", "a\\"),
    HostileId("two backslashes, and escapes of the languages", "a\\\\b\\n\\u0041\\x41\\0101\\c"),
    HostileId("a command substitution", f"$({RUN})"),
    HostileId("a command substitution after a quote", f"'$({RUN})'"),
    HostileId("backticks", f"`{RUN}`'`{RUN}`'"),
    HostileId("a variable and a template", "$HOME ${HOME} ${1+1} {{1}} %(x)s"),
    HostileId("a line end", f"a\n{RUN}\n"),
    HostileId("a line end after a quote", f"a'\n{RUN} #\n"),
    HostileId("a carriage return", f"a\r{RUN}\r"),
    HostileId("an interrupt and an erased line", f"a\x03\x15{RUN}\n\x1b[2K"),
    HostileId("history expansion", f"!! !touch' !! {RUN}"),
    HostileId("percent signs of cmd and of printf", "%PATH% 100%s %n"),
    HostileId("operators", f"a & {RUN} | {RUN} > ran < ran ^& {RUN}; {RUN} && {RUN}"),
    HostileId("a comment and globs", "#a* ?[a-z] ~ {a,b} @x"),
    HostileId("a leading dash", "-rf"),
    HostileId("a leading option of two dashes", "--dangerously-skip-permissions"),
    HostileId("a file", "@/etc/hostname"),
    HostileId("typographic quotes, which are quotes in PowerShell", f"a\u2019; {RUN}; \u2018\u201c\u201d"),
    HostileId("wide quotes, which are quotes in Windows", f"a\uff07; {RUN}; \uff02"),
    HostileId("other scripts", "модель-模型-ü-😀-é"),
    HostileId("directional controls", f"a\u202e{RUN[::-1]}\u2066b\u2069"),
    HostileId("invisible characters", "a\u200b\u2028\u2029\ufeff\x7f\x85\U000e0041b"),
    HostileId("markup", "<script>alert(1)</script><!--&amp;"),
)
