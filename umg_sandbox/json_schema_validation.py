"""Validation of JSON values by `jsonschema`, with RE2 for patterns. Each keyword costs a part of a budget. `jsonschema`
is imported with the first schema, since its import is slow.
"""

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Protocol

from jsonschema import Draft202012Validator, ValidationError, validators

from umg_grpc.wire.core.json_decoding import echo
from umg_sandbox.regular_expressions import compiled, matches
from umg_sandbox.schema_reader import Schema, members
from umg_sandbox.schema_work_budget import MAX_NESTED, STEP_SIZE, WorkBudget
from umg_sandbox.string_formats import STRING_FORMATS

_BUDGET: ContextVar[WorkBudget] = ContextVar("budget of the validation")

Errors = Iterator[ValidationError]


class Validator(Protocol):
    """Interface of a jsonschema validator for the functions that check keywords."""

    def descend(self, instance: object, schema: object) -> Errors: ...


Check = Callable[[Validator, object, object, Schema], Iterable[ValidationError] | None]
"""Function of a keyword: (validator, value of the keyword, instance, schema) -> errors."""


def unfit(value: object, schema: Schema, budget: WorkBudget) -> str:
    """Return the path of a keyword that the value violates, in backticks; "" for a valid value. `format` is not
    checked, as it is an annotation. Raise Exhausted at the end of the budget, and RecursionError for deep nesting.
    """
    before = _BUDGET.set(budget)
    try:
        error = next(_VALIDATOR.evolve(schema=schema).iter_errors(value), None)
    except OverflowError:  # an integer beyond the range of doubles, divided by a fraction
        return "`multipleOf`"
    finally:
        _BUDGET.reset(before)
    return "" if error is None else f"`{echo('.'.join(map(str, error.schema_path)))}`"


def _metered(name: str, check: Check) -> Check:
    def metered(validator: Validator, value: object, instance: object, schema: Schema) -> Errors:
        """Check one keyword after its cost was subtracted from the budget. The cost grows with the value and with
        listed values, since error messages repeat them.
        """
        size = len(repr(instance)) + (len(repr(value)) if name in {"enum", "const"} else 0)
        pairs = members(instance) ** 2 if name == "uniqueItems" else 0
        each = 1 if name in {"anyOf", "oneOf"} else 16
        budget = _BUDGET.get()
        budget.spend(1 + members(value) // each + (size + pairs) // STEP_SIZE)
        budget.nested += 1
        try:
            if budget.nested > MAX_NESTED:
                raise RecursionError
            yield from check(validator, value, instance, schema) or ()
        finally:
            budget.nested -= 1

    return metered


def _pattern(validator: Validator, pattern: object, instance: object, schema: Schema) -> Errors:
    if not isinstance(instance, str) or matches(str(pattern), instance, _BUDGET.get()):
        return
    # SDKs in JavaScript write formats with patterns that RE2 does not support; the generated values match them
    if not instance or schema.get("format") not in STRING_FORMATS or compiled(str(pattern)) is not None:
        yield ValidationError("pattern")


def _pattern_properties(validator: Validator, value: object, instance: object, schema: Schema) -> Errors:
    for name, inner in instance.items() if isinstance(instance, dict) else ():
        for pattern, applied in schema.keywords.pattern_properties.items():
            if matches(pattern, name, _BUDGET.get()):
                yield from validator.descend(inner, applied)


def _additional_properties(validator: Validator, value: object, instance: object, schema: Schema) -> Errors:
    for name, inner in instance.items() if isinstance(instance, dict) else ():
        if schema.keywords.of_property(name, _BUDGET.get()) is value:
            yield from validator.descend(inner, value)


_CHECKS: dict[str, Check] = {
    **Draft202012Validator.VALIDATORS,
    "$ref": lambda validator, target, instance, _: validator.descend(instance, target),
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
}
_VALIDATOR = validators.extend(Draft202012Validator, {name: _metered(name, check) for name, check in _CHECKS.items()})(
    True
)  # its `$ref` resolves nothing, so that schemas are never downloaded
