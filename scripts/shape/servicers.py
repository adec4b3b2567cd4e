"""Length of the servicers: classes whose methods are RPCs, which have a parameter `context`."""

import ast
from collections.abc import Iterator

from scripts.shape.import_graph import ROOT
from scripts.shape.measure import Measure

FOLDER = ROOT / "umg_grpc" / "service" / "servicers"
MAX_LINES = 60


def lines_by_servicer(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the name and the number of lines of each servicer of a module."""
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and any(map(_is_rpc, statement.body)):
            yield statement.name, (statement.end_lineno or 0) - statement.lineno + 1


def measures() -> Iterator[Measure]:
    """Yield the number of lines of the longest servicer."""
    found = [each for path in sorted(FOLDER.glob("*.py")) for each in lines_by_servicer(ast.parse(path.read_text()))]
    places = [f"{name}: {lines}" for name, lines in found if lines > MAX_LINES]
    yield Measure("lines of the longest servicer", max(lines for _, lines in found), MAX_LINES, places=places)


def _is_rpc(member: ast.stmt) -> bool:
    if not isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return any(each.arg == "context" for each in member.args.args)
