"""Check that the last case of each `match` is a decision: `python scripts/check_matches.py [PATH...]`.

A case that matches all other values states the reason in a comment on its line or on the line above, or passes the
value to `assert_never`, so that mypy reports a new kind. A `match` without that last case is left to mypy
(`exhaustive-match`). Prints one line for each finding, and exits with 1 where there is one.
"""

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECKED = (
    "umg_grpc",
    "umg_sandbox",
    "http_facade",
    "clients/python/src",
    "clients/conformance/src",
    "bench",
    "scripts",
)


def findings(text: str) -> Iterator[int]:
    """Yield the lines of cases that match all other values without a reason in a comment."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = {
        token.start[0]: token.line.lstrip().startswith("#") for token in tokens if token.type == tokenize.COMMENT
    }
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Match) and matches_all(last := node.cases[-1]) and not is_exhaustive(last):
            line = last.pattern.lineno
            if line not in comments and not comments.get(line - 1):
                yield line


def matches_all(case: ast.match_case) -> bool:
    """Return whether the case matches every value."""
    return isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None


def is_exhaustive(case: ast.match_case) -> bool:
    """Return whether the case only calls `assert_never`."""
    match case.body:
        case [ast.Expr(ast.Call(ast.Name("assert_never")))]:
            return True
        case _:  # the case handles the value
            return False


def main() -> int:
    """Print the findings in all paths. Return the exit status."""
    places = [Path(each) for each in sys.argv[1:]] or [ROOT / each for each in CHECKED]
    paths = [path for place in places for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
    found = [(path, line) for path in paths for line in sorted(findings(path.read_text(encoding="utf-8")))]
    for path, line in found:
        print(f"{path}:{line}: this case matches all other values: state the reason in a comment, or use assert_never")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
