"""Variables in check files: `${model}` in any text is replaced by the variable's value."""

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class UnsetError(Exception):
    """Error for a variable that has no value; `name` is the variable."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def replaced(value: object, variables: Mapping[str, object]) -> object:
    """Return a JSON value with the variables in all its texts replaced. A text that consists of one variable becomes
    the variable's value, with its type. Raise UnsetError for a variable without a value.
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
