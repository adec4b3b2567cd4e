"""Runner of a target with many bodies, which shrinks the body of each fault that it finds."""

import hashlib
import time
import traceback
from collections.abc import Iterable, Iterator

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.proofs.fuzz.targets import Target

EXAMPLES = 200
"""Bodies drawn from one seed."""


def seeds_until(seconds: float, first: int) -> Iterator[int]:
    """Yield one seed after the other until the time is over."""
    ends, number = time.monotonic() + seconds, first
    while time.monotonic() < ends:
        yield number
        number += 1


def fuzz(target: Target, seeds: Iterable[int], examples: int = EXAMPLES) -> str:
    """Return the description of the first fault that is found; "" for none."""
    return next((fault for number in seeds if (fault := _first_fault(target, number, examples))), "")


def _first_fault(target: Target, number: int, examples: int) -> str:
    failed = b""

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(target.strategy())
    def check(body: bytes) -> None:
        nonlocal failed
        try:
            target.check(body)
        except Exception:
            failed = body
            raise

    try:
        check()
    except Exception:
        digest = hashlib.sha256(failed).hexdigest()[:12]
        return (
            f"{target.name}: {traceback.format_exc()}\nThe smallest body:\n{failed!r}\nTo keep it, once it is mended:\n"
            f"mkdir -p tests/proofs/fuzz/corpus/{target.name} && "
            f"printf %s {failed.hex()} | xxd -r -p > tests/proofs/fuzz/corpus/{target.name}/{digest}"
        )
    return ""
