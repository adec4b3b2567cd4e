"""Fallbacks of a config that no call can reach, for warnings to operators."""

from collections.abc import Collection, Iterator, Mapping

from msgspec.structs import astuple

from umg_grpc.base.printable_text import printable
from umg_grpc.config.file_sections import Fallbacks
from umg_grpc.operations import OPERATIONS_BY_VALUE, ModelOperation
from umg_grpc.routing.router import Router


def uncalled_fallbacks(written: Mapping[str, Fallbacks], router: Router) -> Iterator[str]:
    """Yield a sentence for each fallback in the section `fallbacks` that is never called, because it shares no
    operation with the model that it replaces. Patterns are not checked, since their models differ.
    """
    for model, causes in written.items():
        if "*" in model:
            continue
        able = router.resolve(model).model.described.operations
        for other in dict.fromkeys(name for listed in astuple(causes) for name in listed):
            instead = router.resolve(other).model.described.operations
            if not set(able).intersection(instead):
                problem = (
                    f"`{other}` can {_verbs(instead)}, and `{model}` {_verbs(able)}; name a model for the same calls"
                )
                yield printable(f"fallbacks.{model}: {problem}")


def _verbs(operations: Collection[ModelOperation]) -> str:
    return (
        " and ".join(row.verb for value, row in OPERATIONS_BY_VALUE.items() if value in operations and row.verb)
        or "nothing"
    )
