"""Wall clock of a gateway's process that a test shifts, by the library libfaketime, which is loaded into the process."""

import platform
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

needs_shifted_clocks = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="the package has the library for Linux on x86-64"
)


@dataclass(frozen=True)
class ShiftedClock:
    """Wall clock of the processes that are started with `environment`. It is right until the first `set`."""

    file: Path
    """File from which the processes read the shift at each look at the clock."""

    def set(self, seconds: int) -> None:
        """Shift the clock by seconds from the right time; the processes see it at once."""
        new = self.file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.replace(self.file)

    @property
    def environment(self) -> dict[str, str]:
        spec = find_spec("libfaketime")
        assert spec is not None, "the package libfaketime is not installed"
        assert spec.origin is not None
        if not self.file.exists():
            self.set(0)
        return {
            "LD_PRELOAD": str(Path(spec.origin).parent / "vendor/libfaketime/src/libfaketime.so.1"),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",  # no jump of the wall clock changes the monotonic one
            "NO_FAKE_STAT": "1",
        }
