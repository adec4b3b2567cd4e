"""Writes docs/fidelity.md. Exits with 1 where something is lost without a word, which it then names."""

import sys

from tests.fidelity.page import PAGE, render, silent

PAGE.write_text(render(), encoding="utf-8")
sys.stdout.write(f"wrote {PAGE}\n")
sys.exit("\n".join(silent()) or None)
