"""Website of the documents: its navigation has every page, and its links lead to pages, files and headings."""

import re
from collections import Counter
from pathlib import Path

from scripts import docs_site
from tests.world.console.page_states import OWN_PAGE, STATES

PAGES = docs_site.pages()


def anchors(page: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the website make them."""
    text = docs_site.FENCE.sub("", page)
    slugs = Counter[str]()
    found = set()
    for title in re.findall(r"^#{1,6} +(.+?) *$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.add(f"{slug}-{slugs[slug]}" if slugs[slug] else slug)
        slugs[slug] += 1
    return found


def test_every_document_is_in_the_navigation_once() -> None:
    """A new page needs a line in one section of docs/README.md."""
    named = [path for paths in docs_site.sections().values() for path in paths]
    documents = {str(path.relative_to(docs_site.ROOT)) for path in (docs_site.ROOT / "docs").rglob("*.md")}
    assert sorted(path for path in named if path.startswith("docs/")) == sorted(documents - {docs_site.CONTENTS})
    assert len(named) == len(set(named))
    assert list(docs_site.sections()) == ["Guide", "Recipes", "How-to", "Reference", "Explanation"]


def test_every_link_between_the_pages_leads_to_a_page_or_a_file_and_its_heading() -> None:
    pages = {**PAGES, docs_site.CONTENTS: (docs_site.ROOT / docs_site.CONTENTS).read_text()}
    headings = {path: anchors(text) for path, text in pages.items()}
    broken = []
    for path, text in pages.items():
        own = [(path, found) for found in re.findall(r"\]\(#([^)]+)\)", docs_site.FENCE.sub("", text))]
        for target, anchor in [*docs_site.targets(text, path), *own]:
            page = docs_site.page_of(target)
            exists = page in pages or (docs_site.ROOT / page).exists()
            if not exists or (anchor and anchor not in headings.get(page, ())):
                broken.append((path, target, anchor))
    assert broken == []


def test_the_folder_of_the_website_has_every_target_of_its_links(tmp_path: Path) -> None:
    docs_site.write(tmp_path)
    texts = {path: path.read_text() for path in tmp_path.rglob("*.md")}
    assert len(texts) == len(PAGES) + 1
    absent = [
        (str(path.relative_to(tmp_path)), target)
        for path, text in texts.items()
        for target, _ in docs_site.targets(text, path.as_posix())
        if not Path(target).exists()
    ]
    assert absent == []


def test_the_first_page_of_the_website_has_all_pages_in_its_navigation() -> None:
    navigation = "".join(re.findall(r"```\{toctree\}(.*?)```", docs_site.index(), re.DOTALL)).splitlines()
    shown = {path for path, text in PAGES.items() if not text.startswith(docs_site.NO_NAVIGATION)}
    assert {docs_site.place(path) for path in shown} <= {re.sub(r"^.+ <(.+)>$", r"\1", line) for line in navigation}
    assert "repository/clients/go/README.md" in {docs_site.place(path) for path in PAGES.keys() - shown}


def test_the_first_page_starts_the_gateway_by_the_commands_of_the_readme() -> None:
    # tests run the commands of the README
    readme = (docs_site.ROOT / "README.md").read_text()
    commands = re.findall(r"```(?:sh|bash)\n(.*?)```", docs_site.index(), re.DOTALL)
    assert len(commands) == 3
    for line in "".join(commands).splitlines():
        assert re.search(rf"^{re.escape(line)}( |$)", readme, re.MULTILINE), line


def test_a_link_to_a_folder_without_a_page_becomes_text() -> None:
    assert docs_site.linked("a [link](../scripts) and [proto](../proto/umg/v1)", "docs/operating.md") == (
        "a link and [proto](reference/grpc.md)"
    )
    assert docs_site.linked("```\n[x](../scripts)\n```", "docs/operating.md") == "```\n[x](../scripts)\n```"


def test_the_pictures_that_the_tests_in_a_browser_wrote_are_shown_in_the_colours_of_the_page(tmp_path: Path) -> None:
    page = "docs/pages.md"
    assert docs_site.pictures(page, tmp_path) == ""
    (tmp_path / "docs.png").touch()
    shown = docs_site.pictures(page, tmp_path)
    assert ("{image} screenshots/docs.png" in shown, ":class:" in shown) == (True, False)
    (tmp_path / "docs-dark.png").touch()
    shown = docs_site.pictures(page, tmp_path)
    assert re.findall(r"screenshots/(.+)\.png\n:alt: .+\n:class: only-(\w+)", shown) == [
        ("docs", "light"),
        ("docs-dark", "dark"),
    ]


def test_each_picture_that_the_tests_in_a_browser_write_has_a_page() -> None:
    tests = "".join(path.read_text() for path in (docs_site.ROOT / "tests/world/pages").glob("test_*.py"))
    named = set(re.findall(r'SCREENSHOTS / "(.+)\.png"', tests)) | set(re.findall(r'"(playground-chat[a-z-]*)"', tests))
    for state in (*STATES, OWN_PAGE):
        if state.picture:
            named |= {state.picture, f"{state.picture}-dark"}
        if state.phone_picture:
            named.add(f"{state.picture}-phone")
    listed = {name for pictures in docs_site.PICTURES.values() for name in pictures}
    assert {name.removesuffix("-dark") for name in named} == listed


def test_a_website_is_current_with_the_digest_of_the_sources(tmp_path: Path) -> None:
    assert not docs_site.is_current(tmp_path)
    (tmp_path / docs_site.DIGEST).write_text(f"{docs_site.digest()} of others")
    assert not docs_site.is_current(tmp_path)
    (tmp_path / docs_site.DIGEST).write_text(docs_site.digest())
    assert docs_site.is_current(tmp_path)


def test_the_digest_of_the_sources_has_all_of_them_except_for_pictures(tmp_path: Path) -> None:
    (tmp_path / "console-overview.png").touch()
    plain, shown = docs_site.sources(docs_site.NO_PICTURES), docs_site.sources(tmp_path)
    assert shown.keys() - plain.keys() == {"screenshots/console-overview.png"}
    assert {name for name in plain if shown[name] != plain[name]} == {"index.md", "console.md"}
    assert {"conf.py", "search_scorer.js", "_static/wide.css", "reference/grpc.md"} <= plain.keys()
