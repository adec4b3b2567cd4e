"""Check the language of docstrings and comments: `python scripts/check_language.py [PATH...]`.

A docstring of a function begins with a verb in the imperative ("Return", "Raise", "Emit") or, as that of a class, a
module or a property, with a noun. Neither docstrings nor comments use the words below, for which the field has terms.
Prints one line for each finding, and exits with 1 where there is one.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECKED = ("umg_grpc", "http_facade", "clients/python/src/umg_client", "bench", "scripts", "tests")
GENERATED = ("umg_client/v1", "migrations/versions")

BANNED = {
    r"what(?:ever)?": "name the thing",
    r"such": "name the thing",
    r"so many": "say the number or its name",
    r"those (?:that|who|which)|who(?:ever|m)?": "name the subject",
    r"tells?|told|telling": "send, return, report, encode",
    r"said|saying": "send, state, contain",
    r"asks?|asked|asking": "call, request, select",
    r"hears?|heard": "receive",
    r"nobody|anybody|somebody|everybody|anyone's": "name the subject",
    r"its like|and the like|the like of": "name them",
}
"""Pattern of words -> advice. Quoted words, in backticks or quotation marks, are exempt."""
NOT_FIRST = frozenset(
    {
        *("what", "whether", "who", "whose", "which", "where", "when", "how", "why", "that", "so", "those", "such"),
        *("as", "if", "not", "no", "see", "it", "its", "this"),
    }
)
"""Words with which no docstring of a function begins."""
THIRD_PERSON = re.compile(
    r"(?:Return|Raise|Yield|Make|Read|Write|Put|Take|Give|Tell|Keep|Send|Add|Set|Get|Call|Check|Find|Look|Remember|Forget|"
    r"Begin|Start|Stop|End|Close|Open|Wait|Run|Serve|Say|Note|Fill|Move|Count|Count|Encode|Decode|Correct|Change|Replace|"
    r"Remove|Drop|Refuse|Build|Show|Let|Hold|Bring|Leave|Split|Join|Rename|Parse|Print|Load|Log|Mark|Save|Store)s"
    r"|(?:Pass|Reach|Fetch|Match|Finish|Push|Flush|Watch|Attach|Catch)es|Does|Has|Goes|Carries|Copies|Tries|Applies"
)

_QUOTED = re.compile(r"``.*?``|`[^`]*`|\"[^\"\n]*\"|'[^'\n ]*'", re.DOTALL)
_BANNED = [(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), advice) for pattern, advice in BANNED.items()]


def findings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, finding) of one module."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        for line, docstring, function in docstrings(node):
            yield from of_text(line, docstring)
            first = re.split(r"[\s,:.]", docstring.strip(), maxsplit=1)[0]
            if function and (first.lower() in NOT_FIRST or THIRD_PERSON.fullmatch(first)):
                yield line, f"begins with {first!r}: begin with a verb in the imperative, such as Return"
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not re.match(r"# ?(?:noqa|type:|fmt:|pragma)", token.string):
            yield from of_text(token.start[0], token.string)


def docstrings(node: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """Yield (line, text, is of a function) of a node's own docstring and of its attributes' docstrings."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    is_property = is_function and any("property" in ast.dump(each) for each in node.decorator_list)
    for place, statement in enumerate(node.body):
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
            continue
        text = statement.value.value
        if isinstance(text, str) and (place == 0 or not is_function):
            yield statement.lineno, text, is_function and not is_property


def of_text(line: int, text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, finding) of a docstring or comment that begins at a line."""
    plain = _QUOTED.sub(lambda quoted: re.sub(r"[^\n]", "_", quoted[0]), text)
    for pattern, advice in _BANNED:
        for found in pattern.finditer(plain):
            yield line + plain.count("\n", 0, found.start()), f"{found[0]!r}: {advice}"


def main() -> int:
    """Print the findings in all paths. Return the exit status."""
    places = [Path(each) for each in sys.argv[1:]] or [ROOT / each for each in CHECKED]
    count = 0
    for place in places:
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            if any(part in path.as_posix() for part in GENERATED):
                continue
            for line, finding in sorted(findings(path)):
                count += 1
                print(f"{path}:{line}: {finding}")
    if count:
        print(f"{count} findings", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
