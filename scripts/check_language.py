"""Check the language of names, docstrings, comments and documents: `python scripts/check_language.py [PATH...]`.

A docstring of a function begins with a verb in the imperative ("Return", "Raise", "Emit") or, as that of a class, a
module or a property, with a noun. Names, docstrings, comments (also those of the schema) and documents do not use the
words below, for which the field has terms. Prints one line for each finding, and exits with 1 where there is one.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECKED = (
    *("umg_grpc", "umg_sandbox", "http_facade", "clients", "bench", "scripts", "tests", "hatch_build.py"),
    *("proto/umg", "docs", "README.md", "CHANGELOG.md"),
)
GENERATED = (
    "umg_client/v1",
    "migrations/versions",
    "node_modules",
    "java/target",
    "rust/target",
    "tests/proofs/fuzz/corpus",
)

BANNED = {
    r"what(?:ever)?": "name the thing",
    r"such": "name the thing",
    r"so many": "say the number or its name",
    r"those (?:that|who|which)|who(?:ever|m)?": "name the subject",
    r"tells?|told|telling": "send, return, report, encode",
    r"says?|said|saying": "send, state, contain",
    r"asks?|asked|asking": "call, request, select",
    r"hears?|heard": "receive",
    r"(?:no|any|some|every)(?:body|one)|no one": "name the subject",
    r"knows": "has, recognizes, supports",
    r"its like|and the like|the like of|and so on": "name them",
    r"rests|resting": "is paused, has an open circuit breaker",
    r"(?:is|are|was|were|been|has|have|had) thought": "reasoning",
    r"(?:is|are|be|been|was|were|not|stays?) well(?!-| known)": "healthy, closed",
    r"as well(?! as)": "also, too",
    r"stands?(?! for)|stood": "is, is written, occurs",
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
_CODE_BLOCK = re.compile(r"^ *```.*?^ *```$|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
"""A code block, or the target of a link, of Markdown."""
_NOT_A_COMMENT = re.compile(r"^(?: *(?!//)\S(?:.*?(?= //)|.*))", re.MULTILINE)
"""The part of a line of a .proto file before its comment."""
_BANNED = [(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), advice) for pattern, advice in BANNED.items()]


def findings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, finding) of one file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from of_module(text)
    else:
        yield from of_text(1, _blanked(_CODE_BLOCK if path.suffix == ".md" else _NOT_A_COMMENT, text))


def of_module(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, finding) of the names, docstrings and comments of a Python module."""
    for node in ast.walk(ast.parse(text)):
        for line, name in names(node):
            for _, finding in of_text(line, re.sub(r"_|(?<=[a-z])(?=[A-Z])", " ", name)):
                yield line, f"{name}: {finding}"
        for line, docstring, function in docstrings(node):
            yield from of_text(line, docstring)
            first = re.split(r"[\s,:.]", docstring.strip(), maxsplit=1)[0]
            if function and (first.lower() in NOT_FIRST or first.startswith("`") or THIRD_PERSON.fullmatch(first)):
                yield line, f"begins with {first!r}: begin with a verb in the imperative, such as Return"
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not re.match(r"# ?(?:noqa|type:|fmt:|pragma)", token.string):
            yield from of_text(token.start[0], token.string)


def names(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, name) where a node defines a function, a class, a parameter or a variable."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.lineno, node.name
        case ast.arg():
            yield node.lineno, node.arg
        case ast.Name(ctx=ast.Store()):
            yield node.lineno, node.id


def docstrings(node: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """Yield (line, text, is of a function) of a node's own docstring and of its attributes' docstrings."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    is_property = is_function and any("property" in ast.dump(each) for each in node.decorator_list)
    for position, statement in enumerate(node.body):
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
            continue
        text = statement.value.value
        if isinstance(text, str) and (position == 0 or not is_function):
            yield statement.lineno, text, is_function and not is_property


def of_text(line: int, text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, finding) of a text that begins at a line."""
    plain = _blanked(_QUOTED, text)
    for pattern, advice in _BANNED:
        for found in pattern.finditer(plain):
            yield line + plain.count("\n", 0, found.start()), f"{found[0]!r}: {advice}"


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda found: re.sub(r"[^\n]", "_", found[0]), text)


def files(root: Path) -> list[Path]:
    """Return the checked files of a directory, or the file itself."""
    found = [path for path in root.rglob("*") if path.suffix in (".py", ".md", ".proto")] if root.is_dir() else [root]
    return sorted(path for path in found if not any(part in path.as_posix() for part in GENERATED))


def main() -> int:
    """Print the findings in all paths. Return the exit status."""
    roots = [Path(each) for each in sys.argv[1:]] or [ROOT / each for each in CHECKED]
    found = [(path, *each) for root in roots for path in files(root) for each in sorted(findings(path))]
    for path, line, finding in found:
        print(f"{path}:{line}: {finding}")
    if found:
        print(f"{len(found)} findings", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
