"""Look-up of the docstrings of attributes of classes and modules: strings behind an assignment, which Python does not
keep.
"""

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise


@cache
def attributes(described: type) -> Mapping[str, str]:
    """Return the docstrings of the attributes of a class and of its bases, by name."""
    found: dict[str, str] = {}
    for each in reversed(described.__mro__):
        if each.__module__.partition(".")[0] in ("umg_grpc", "http_facade"):
            [node] = ast.parse(textwrap.dedent(inspect.getsource(each))).body
            found |= _behind_assignments(node.body if isinstance(node, ast.ClassDef) else [])
    return found


def _behind_assignments(body: Sequence[ast.stmt]) -> dict[str, str]:
    found = {}
    for statement, following in pairwise(body):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
            and isinstance(following.value.value, str)
        ):
            found[statement.target.id] = inspect.cleandoc(following.value.value)
    return found
