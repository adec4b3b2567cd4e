"""YAML with its places: plain values, each known by its path, and the line on which it stands.

Scalars stay text, and the field that takes one decides its type: `api_key: 0123` is a key and `weight: "2"` a number,
so a variable (`weight: ${WEIGHT}`) can stand wherever a value can.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import yaml

Path = tuple[str | int, ...]
"""Keys and positions from the top: `("channels", 0, "name")`."""

Value = str | None | list["Value"] | dict[str, "Value"]

REFERENCE = re.compile(r"\$\$\{|\$\{(?P<name>[^}]*)(?P<end>\}?)")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NULL_TAG = "tag:yaml.org,2002:null"


@dataclass(frozen=True)
class Problem:
    """One thing that must be corrected: where it stands, and what was expected there."""

    filename: str
    line: int
    path: str
    """As the file nests it: `channels[0].name`; empty for the file as a whole."""
    expected: str

    def __str__(self) -> str:
        place = f"{self.filename}:{self.line}: "
        return f"{place}{self.path}: {self.expected}" if self.path else f"{place}{self.expected}"


class ConfigError(Exception):
    """The config cannot be used. Its text has a line for each problem, in the order of the file.

    No value that came from a variable is ever part of it.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line))
        super().__init__("\n".join(map(str, self.problems)))


class Document:
    """A file as values, with the problems that were met in it so far."""

    def __init__(self, text: str, filename: str, environment: Mapping[str, str]) -> None:
        """Raises ConfigError if the text is not YAML; all else becomes a problem."""
        self._filename = filename
        self._environment = environment
        self._lines: dict[Path, int] = {}
        self.problems: list[Problem] = []
        self._seen: set[int] = set()
        self._loader = yaml.SafeLoader("")  # for its rules: merge keys, and which plain text means null
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = mark.line + 1 if mark else 1
            raise ConfigError([Problem(filename, place, "", f"expected YAML: {error.problem}")]) from None
        except yaml.YAMLError as error:
            raise ConfigError([Problem(filename, 1, "", f"expected YAML: {error}")]) from None
        self.value: Value = self._read(root, (), ()) if root is not None else None

    def problem(self, path: Path, expected: str) -> None:
        """Notes that what stands at the path, or is missing there, is not what was expected.

        What else is wrong with the same value mostly follows from that, and is left out.
        """
        problem = Problem(self._filename, self._line(path), _text(path), expected)
        if all(problem.path != earlier.path for earlier in self.problems) or not problem.path:
            self.problems.append(problem)

    def has(self, path: Path) -> bool:
        """Whether the file says something there."""
        return path in self._lines

    def _line(self, path: Path) -> int:
        """The line of the path, or of the nearest thing around it that has one."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)

    def _read(self, node: yaml.Node, path: Path, around: tuple[yaml.Node, ...]) -> Value:
        """The node's value. `around` are the nodes it lies in, for an alias may name one of them."""
        self._lines.setdefault(path, node.start_mark.line + 1)
        if any(node is outer for outer in around):
            self.problem(path, "expected a value that does not contain itself")
            return None
        around = (*around, node)
        match node:
            case yaml.MappingNode():
                return self._mapping(node, path, around)
            case yaml.SequenceNode():
                return [self._read(child, (*path, index), around) for index, child in enumerate(node.value)]
            case yaml.ScalarNode() if node.tag == NULL_TAG:
                return None
            case _:
                return self._substitute(str(node.value), path)

    def _mapping(self, node: yaml.MappingNode, path: Path, around: tuple[yaml.Node, ...]) -> Value:
        if id(node) not in self._seen:  # an alias brings it again, with what was merged into it in its place
            self._seen.add(id(node))
            self._check_keys(node, path)
            try:
                self._loader.flatten_mapping(node)  # `<<: *defaults`; what is written beside it comes later and wins
            except yaml.MarkedYAMLError as error:
                self.problem(path, f"expected YAML: {error.problem}")
        values: dict[str, Value] = {}
        for key, child in node.value:
            if isinstance(key, yaml.ScalarNode):
                values[key.value] = self._read(child, (*path, key.value), around)
        return values

    def _check_keys(self, node: yaml.MappingNode, path: Path) -> None:
        written: set[str] = set()
        for key, _ in node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            self._lines[*path, name] = key.start_mark.line + 1
            if not name:
                self.problem((*path, name), "expected a key that is plain text")
            elif name in written:
                self.problem((*path, name), "expected once, but it stands here again")
            written.add(name)

    def _substitute(self, text: str, path: Path) -> str:
        """The text with each `${NAME}` replaced by the variable; `$${` stands for `${` itself."""

        def replace(match: re.Match[str]) -> str:
            name = match["name"]
            if name is None:
                return "${"
            if not match["end"] or not VARIABLE.fullmatch(name):
                self.problem(
                    path, "expected ${NAME} with the name of an environment variable; $${ stands for ${ itself"
                )
                return ""
            if name not in self._environment:
                self.problem(path, f"expected the environment variable {name} to be set")
                return ""
            return self._environment[name]

        return REFERENCE.sub(replace, text)


def _text(path: Path) -> str:
    """The path as the file's reader would say it."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
