"""YAML document with the line of each value, so that a problem can be reported at its line. Scalars stay text until
their field is converted: `api_key: 0123` is a key and `weight: "2"` a number. A variable (`weight: ${WEIGHT}`) can
therefore be used for any value.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

import yaml

Path = tuple[str | int, ...]
"""Keys and positions from the root: `("channels", 0, "name")`."""

Value = str | None | list["Value"] | dict[str, "Value"]

VARIABLE_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<name>[^}]*)(?P<end>\}?)")
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NULL_TAG = "tag:yaml.org,2002:null"
YAML_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""YAML parser; it is seven times as fast if PyYAML is built with libyaml, as PyYAML's wheels are."""
MAX_VALUES = 1_000_000
"""Most values of a file, which take about 400 MB of memory. An alias counts as all values that it repeats, since a file
of ten lines could have billions.
"""
SHOWN_PROBLEMS = 100
LINE_HINTS = (
    (re.compile(r"[\[{,:-]\s*[*&@`%]"), "put a text that begins with `*`, `&`, `@`, `%` or a backquote in quotes"),
    (re.compile(r"^\s*\t|^ *\t"), "indent by spaces: YAML permits no tabs there"),
    (re.compile(r":\s+[^\s'\"{\[].*:\s"), "put a text with `: ` in it in quotes"),
)
"""(pattern of a line that is not valid YAML, usual cause)."""


@dataclass(frozen=True)
class Problem:
    """Problem in a config file: the file and line, the path of the value, and a description of a valid value."""

    filename: str
    line: int
    path: str
    """Path in the file, for example `channels[0].name`; empty for the whole file."""
    expected: str
    keys: Path = ()
    """The same path as keys and positions."""

    def __str__(self) -> str:
        place = f"{self.filename}:{self.line}: "
        return f"{place}{self.path}: {self.expected}" if self.path else f"{place}{self.expected}"


class ConfigError(Exception):
    """Error for an invalid config; its text has a line for each of the first problems, in file order. It never contains
    the value of an environment variable.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line))
        lines = [str(problem) for problem in self.problems[:SHOWN_PROBLEMS]]
        if (more := len(self.problems) - SHOWN_PROBLEMS) > 0:
            lines.append(f"{self.problems[0].filename}: and {more} more problems")
        super().__init__("\n".join(lines))


class YamlDocument:
    """Parsed YAML file: its values, their lines, and the problems reported so far."""

    def __init__(self, text: str, filename: str, environment: Mapping[str, str]) -> None:
        """Parse the text of a file. Raises ConfigError if it is not YAML; other problems are only recorded."""
        self._filename = filename
        self.environment = environment
        self._lines: dict[Path, int] = {}
        self.problems: list[Problem] = []
        self._seen: set[int] = set()
        self._reported: set[str] = set()
        self._values = 0
        self._loader = yaml.SafeLoader("")  # used for its rules of merge keys and of null
        try:
            root = yaml.compose(text, Loader=YAML_LOADER)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line if mark else 0
            expected = f"expected YAML: {error.problem}{_hint(text.splitlines(), line)}"
            raise ConfigError([Problem(filename, line + 1, "", expected)]) from None
        except yaml.YAMLError as error:
            raise ConfigError([Problem(filename, 1, "", f"expected YAML: {error}")]) from None
        self.value: Value = self._read(root, (), ()) if root is not None else None

    def problem(self, path: Path, expected: str) -> None:
        """Record a problem of the value at `path`, or of a missing value. `expected`: description of a valid value.
        Only the first problem of a value is kept, since others mostly follow from it.
        """
        problem = Problem(self._filename, self.line(path), path_text(path), expected, path)
        if problem.path not in self._reported or not problem.path:
            self._reported.add(problem.path)
            self.problems.append(problem)

    def has(self, path: Path) -> bool:
        """Return whether the file contains a value or key at the path."""
        return path in self._lines

    def place(self, path: Path) -> str:
        """Return the name of the file with the line of the value or key at the path; "" if the file has none."""
        return f"{PurePath(self._filename).name}:{self._lines[path]}" if path in self._lines else ""

    def variable(self, name: str) -> str | None:
        """Return the value of an environment variable; None if it is not set."""
        return self.environment.get(name)

    def line(self, path: Path) -> int:
        """Return the line of the value at a path, or of the nearest one above it that the file has."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)

    def _read(self, node: yaml.Node, path: Path, ancestors: tuple[yaml.Node, ...]) -> Value:
        """Convert a YAML node at `path` to a value, and record the lines of all values in it."""
        self._lines.setdefault(path, node.start_mark.line + 1)
        self._values += 1
        if self._values > MAX_VALUES:
            expected = f"expected at most {MAX_VALUES:,} values; an alias counts with all values that it repeats"
            raise ConfigError([Problem(self._filename, self.line(path), path_text(path), expected)])
        if any(node is outer for outer in ancestors):
            self.problem(path, "expected a value that does not contain itself")
            return None
        ancestors = (*ancestors, node)
        match node:
            case yaml.MappingNode():
                return self._mapping(node, path, ancestors)
            case yaml.SequenceNode():
                return [self._read(child, (*path, index), ancestors) for index, child in enumerate(node.value)]
            case yaml.ScalarNode() if node.tag == NULL_TAG:
                return None
            case _:  # any other scalar
                return self._substitute(str(node.value), path)

    def _mapping(self, node: yaml.MappingNode, path: Path, ancestors: tuple[yaml.Node, ...]) -> Value:
        if id(node) not in self._seen:  # an alias repeats the node, with its merge keys already replaced
            self._seen.add(id(node))
            self._check_keys(node, path)
            try:
                self._loader.flatten_mapping(
                    node
                )  # `<<: *defaults`; the node's own keys come later and take precedence
            except yaml.MarkedYAMLError as error:
                self.problem(path, f"expected YAML: {error.problem}")
        values: dict[str, Value] = {}
        for key, child in node.value:
            if isinstance(key, yaml.ScalarNode):
                values[key.value] = self._read(child, (*path, key.value), ancestors)
        return values

    def _check_keys(self, node: yaml.MappingNode, path: Path) -> None:
        written: set[str] = set()
        for key, _ in node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            self._lines[*path, name] = key.start_mark.line + 1
            if not name:
                self.problem((*path, name), "expected a key that is plain text")
            elif name in written:
                self.problem((*path, name), "expected once, but it occurs here again")
            written.add(name)

    def _substitute(self, text: str, path: Path) -> str:
        """Replace each `${NAME}` in the value at `path` by the environment variable, and `$${` by `${`."""

        def replace(match: re.Match[str]) -> str:
            name = match["name"]
            if name is None:
                return "${"
            if not match["end"] or not VARIABLE_NAME.fullmatch(name):
                self.problem(
                    path, "expected ${NAME} with the name of an environment variable; $${ stands for ${ itself"
                )
                return ""
            if name not in self.environment:
                self.problem(path, f"expected the environment variable {name} to be set")
                return ""
            return self.environment[name]

        return VARIABLE_REFERENCE.sub(replace, text)


def _hint(lines: list[str], number: int) -> str:
    line = lines[number] if number < len(lines) else ""
    return next((f"; {hint}" for pattern, hint in LINE_HINTS if pattern.search(line)), "")


def path_text(path: Path) -> str:
    """Return a path as text, for example `channels[0].name`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
