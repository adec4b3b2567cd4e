"""SVG of a recording, of text alone: its lines appear one by one, at once where motion is not wanted."""

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.docs.recording.session import Step

PAGE = Path(__file__).parents[3] / "docs/recording.svg"
COLUMNS = 108
LINE, MARGIN, CHARACTER = 19, 16, 8.43  # pixels; a character of 14 px in a monospaced font
PAUSE, PRINTED = 1.6, 0.12  # seconds before a command, and before each line of output
STYLE = """
  svg { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
  text { white-space: pre; fill: #c9d1d9; animation: shown 0.01s both; }
  .command { fill: #ffffff; font-weight: bold; }
  @keyframes shown { from { opacity: 0; } to { opacity: 1; } }
  @media (prefers-reduced-motion: reduce) { text { animation: none; } }
"""


def picture(steps: Sequence[Step]) -> str:
    lines, seconds, place = [], 0.0, 0
    for step in steps:
        for kind, begin, text in _texts(step):
            seconds += PAUSE if begin == "first" and kind == "command" else PRINTED
            for part, chunk in enumerate(_wrapped(text, "$ " if kind == "command" and begin == "first" else "")):
                name = f"{kind} {begin}" if part == 0 else kind
                y = MARGIN + LINE * (place + 1)
                delay = f"{seconds:.2f}s"
                content = escape(chunk)
                lines.append(
                    f'<text class="{name}" x="{MARGIN}" y="{y}" style="animation-delay: {delay}" xml:space="preserve">'
                    f"{content}</text>"
                )
                place += 1
        place += 1
    width, height = round(2 * MARGIN + COLUMNS * CHARACTER), 2 * MARGIN + LINE * place
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' role="img" aria-label="Terminal: {escape(", ".join(step.command.split()[0] for step in steps))}">\n'
        f"<style>{STYLE}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>\n' + "\n".join(lines) + "\n</svg>\n"
    )


def _texts(step: Step) -> Iterator[tuple[str, str, str]]:
    """Yield (`command` or `output`, `first` or `next` for a further line of a command, text) of each line of a step."""
    for at, line in enumerate(step.command.splitlines()):
        yield "command", "next" if at else "first", line
    for line in step.output.splitlines():
        yield "output", "first", line


def steps_of(svg: str) -> list[Step]:
    found: list[tuple[str, str]] = []
    for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        kind, first = text.attrib["class"].partition(" ")[::2]
        chunk = text.text or ""
        if first == "next":
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{chunk}")
        elif not first:
            found[-1] = (found[-1][0], found[-1][1] + chunk.removeprefix("  "))
        else:
            found.append((kind, chunk.removeprefix("$ ") if kind == "command" else chunk))
    steps: list[Step] = []
    for kind, line in found:
        if kind == "command":
            steps.append(Step(line, ""))
        else:
            steps[-1] = Step(steps[-1].command, f"{steps[-1].output}{line}\n")
    return steps


def _wrapped(text: str, prompt: str) -> list[str]:
    """Return a line in parts of at most `COLUMNS` characters, those after the first indented."""
    line = f"{prompt}{text.rstrip()}"
    if len(line) <= COLUMNS:
        return [line]
    wrapper = textwrap.TextWrapper(
        COLUMNS, subsequent_indent="  ", drop_whitespace=False, break_on_hyphens=False, replace_whitespace=False
    )
    return wrapper.wrap(line)
