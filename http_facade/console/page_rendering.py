"""Drawing of the console's pages by Jinja2, which is imported by the first of them."""

import asyncio
import time
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from http_facade.console import figure_texts
from http_facade.exchange.page_files import assets_path

if TYPE_CHECKING:
    import jinja2

WORDS_FILE = "words.toml"
TURN_SECONDS = 0.004
"""Time for which the drawing of a page holds the event loop."""
TEMPLATE_FILTERS = {
    "count": figure_texts.count_text,
    "amount": figure_texts.amount_text,
    "exact_amount": figure_texts.exact_amount,
    "exact_time": figure_texts.exact_time,
    "ago": figure_texts.relative_time,
}
"""Filters of templates. Templates escape all texts, and fail on unknown names."""
INCLUDED_ENDS = ("base.html", "parts.html")
"""Ends of the names of templates that others include."""
_TEMPLATES: "dict[str, jinja2.Template]" = {}
"""Templates that were compiled, which takes up to 0.1 s for the first page of a process, and so a thread."""


class WordTable:
    """Texts by their names, which templates write as attributes; no other attribute hides one of them."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.__table = {name: WordTable(each) if isinstance(each, dict) else each for name, each in table.items()}

    def __getitem__(self, name: str) -> "WordTable | str":
        return self.__table[name]


@cache
def words() -> Mapping[str, Mapping[str, str]]:
    """Return all English texts of the console, by page and name."""
    return tomllib.loads(files("http_facade").joinpath("console", WORDS_FILE).read_text())


def word(key: str, /, **values: object) -> str:
    """Return a text by its key, `page.name`, with values in place of its braces. Raise KeyError for an unknown one."""
    page, _, name = key.partition(".")
    text = words()[page][name]
    return text.format(**values) if values else text


async def render(template: str, **values: object) -> str:
    """Return the HTML of a page, which is drawn in parts: between them other calls go on."""
    if template not in _TEMPLATES:
        _TEMPLATES[template] = await asyncio.to_thread(_load, template)
    parts, began = list[str](), time.perf_counter()
    for part in _TEMPLATES[template].generate(**values):
        parts.append(part)
        if time.perf_counter() - began > TURN_SECONDS:
            await asyncio.sleep(0)
            began = time.perf_counter()
    return "".join(parts)


def _load(template: str) -> "jinja2.Template":
    """Return a compiled template. The environment keeps the ones that it may include."""
    environment = _environment()
    for name in environment.list_templates(filter_func=lambda name: name.endswith(INCLUDED_ENDS)):
        environment.get_template(name)
    return environment.get_template(f"{template}.html")


@cache
def _environment() -> "jinja2.Environment":
    import jinja2  # 50 ms, which a start without a console does not have

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("http_facade.console"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {**TEMPLATE_FILTERS, "fill": str.format}
    environment.globals |= {"words": WordTable(words()), "assets": assets_path()}
    return environment
