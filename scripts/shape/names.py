"""Measures of names: files of one base name in two rooms, classes of one name, and constants of one word."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from scripts.shape.import_graph import ROOT
from scripts.shape.measure import Measure

PACKAGES = ("umg_grpc", "http_facade", "umg_sandbox")
ROWS = ("umg_grpc/wire", "umg_grpc/operations", "umg_grpc/knowledge/families")
"""Folders with a file or folder for each format, operation or family, named by it; each format has its `request.py`."""
FORMATS = "umg_grpc/wire"
SHARED_FORMAT_ROOMS = ("core", "errors", "model_lists")
"""Folder of the formats, whose classes have the names that their documents use, and its folders that are no format."""


def measures() -> Iterator[Measure]:
    """Yield the measures of the names of files and constants."""
    files = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    twice = shared_names(path.relative_to(ROOT) for path in files)
    shared = [f"{name}: {', '.join(map(str, places))}" for name, places in twice.items()]
    yield Measure("base names of two files outside the rows", len(shared), 0, places=shared)
    texts = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in files}
    repeated = [f"{name}: {', '.join(map(str, places))}" for name, places in shared_classes(texts).items()]
    yield Measure("class names of two files outside the formats", len(repeated), 0, places=repeated)
    single = [f"{path}: {name}" for path, text in texts.items() for name in constants_of_one_word(text)]
    yield Measure("constants of one word", len(single), 0, places=single)


def shared_names(files: Iterator[Path]) -> dict[str, list[Path]]:
    """Return the base names that several files outside the rows have, with their paths."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for path in files:
        in_rows = any(path.is_relative_to(folder) for folder in ROWS)
        if not (path.name.startswith("__") or in_rows or "migrations" in path.parts):
            found[path.stem].append(path)
    return {name: places for name, places in sorted(found.items()) if len(places) > 1}


def shared_classes(texts: Mapping[Path, str]) -> dict[str, list[Path]]:
    """Return the class names that several files have, with their paths: public names of files outside the formats, and
    private names of files of one folder.
    """
    found: defaultdict[tuple[str, Path | None], list[Path]] = defaultdict(list)
    for path, text in texts.items():
        for node in ast.parse(text).body:
            if not isinstance(node, ast.ClassDef) or "migrations" in path.parts:
                continue
            if node.name.startswith("_"):
                found[node.name, path.parent].append(path)
            elif not _is_of_format(path):
                found[node.name, None].append(path)
    return {name: places for (name, _), places in sorted(found.items(), key=str) if len(places) > 1}


def _is_of_format(path: Path) -> bool:
    return path.is_relative_to(FORMATS) and path.parent != Path(FORMATS) and path.parts[2] not in SHARED_FORMAT_ROOMS


def constants_of_one_word(text: str) -> list[str]:
    """Return the names of one word that public constants of a module have."""
    targets = (target for statement in ast.parse(text).body for target in _targets(statement))
    nodes = (node for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))
    return [node.id for node in nodes if isinstance(node.ctx, ast.Store) and node.id.isupper() and "_" not in node.id]


def _targets(statement: ast.stmt) -> list[ast.expr]:
    match statement:
        case ast.Assign(targets=targets):
            return targets
        case ast.AnnAssign(target=target):
            return [target]
        case _:  # no assignment
            return []
