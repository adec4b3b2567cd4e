"""Variables in the texts of checks: `${model}`."""

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class UnsetError(Exception):
    """Error of a variable without a value."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def replaced(value: object, variables: Mapping[str, object]) -> object:
    """Return the value with its variables replaced. A text that is one variable gets its value, of any type.

    Raise UnsetError for a variable without a value.
    """
    match value:
        case str():
            whole = _REFERENCE.fullmatch(value)
            if whole is not None:
                return _value(whole[1], variables)
            return _REFERENCE.sub(lambda found: str(_value(found[1], variables)), value)
        case list():
            return [replaced(item, variables) for item in value]
        case dict():
            return {key: replaced(item, variables) for key, item in value.items()}
        case _:  # numbers, booleans and null have no variables
            return value


def _value(name: str, variables: Mapping[str, object]) -> object:
    if name not in variables:
        raise UnsetError(name)
    return variables[name]
