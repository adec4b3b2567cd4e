"""Words of the console: each is used, none is missing, and templates have no words of their own."""

import re
from importlib.resources import files

from http_facade.console.page_rendering import words
from http_facade.console.page_table import CONSOLE_PAGES

FOLDER = files("http_facade").joinpath("console")
TEMPLATES = {path.name: path.read_text() for path in FOLDER.joinpath("templates").iterdir()}
DIRECT = re.compile(r"\bwords\.(\w+)\.(\w+)")
BY_NAME = re.compile(r"\bwords\.(\w+)\[|\bwords\[frame\.page\.name\]\.(\w+)")
OUTSIDE_OF_TAGS = re.compile(r"<[^>]*>|\{\{.*?\}\}|\{%.*?%\}|&\w+;", re.DOTALL)


def test_each_word_that_a_template_names_exists() -> None:
    known = words()
    for name, text in TEMPLATES.items():
        for page, word in DIRECT.findall(text):
            assert known[page][word], (name, page, word)
    for page in CONSOLE_PAGES:
        assert known[page.name]["title"]
        assert not page.group or known[page.name]["nav"]


def test_each_word_is_used() -> None:
    used = {found for text in TEMPLATES.values() for found in DIRECT.findall(text)}
    whole = {page for text in TEMPLATES.values() for page, _ in BY_NAME.findall(text) if page} | {"notes"}
    of_pages = {(page.name, word) for page in CONSOLE_PAGES for word in ("title", "nav")}
    unused = [
        (page, word)
        for page, table in words().items()
        for word in table
        if (page, word) not in used | of_pages and page not in whole
    ]
    assert unused == []


def test_each_note_is_one_of_an_act() -> None:
    source = "".join(path.read_text() for path in FOLDER.joinpath("pages").iterdir() if path.name.endswith(".py"))
    named = set(re.findall(r'\bDone\([^\n]*, "(\w+)"\)', source))
    assert named == set(words()["notes"])


def test_templates_have_no_words_of_their_own() -> None:
    for name, text in TEMPLATES.items():
        assert re.findall(r"[A-Za-z]{3,}", OUTSIDE_OF_TAGS.sub(" ", text.replace(PRE, ""))) == [], name


PRE = 'curl {{ frame.address }}/v1/models -H "authorization: Bearer {{ content.secret }}"'
"""Command that is no English text."""
