"""Command that writes docs/fidelity.md. Exits with 1 and lists the fields that are lost without a report, if there are
any.
"""

import sys

from tests.pairs.fidelity.page import PAGE, render, silent

PAGE.write_text(render(), encoding="utf-8")
sys.stdout.write(f"wrote {PAGE}\n")
sys.exit("\n".join(silent()) or None)
