"""Comments of the schema, for documents that are generated from it."""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_WRAPPED = re.compile(r"(?<!\n)\n(?![\n*-])")


@cache
def comments() -> Mapping[str, str]:
    """Return the comments of the schema by the full names of their elements, for example `umg.v1.Model.id`.

    An enum value is named below its enum. They are in a file that the build writes beside the generated modules; empty
    without it.
    """
    file = files("umg.v1") / "comments.json"
    found: dict[str, str] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return {name: _WRAPPED.sub(" ", text) for name, text in found.items()}
