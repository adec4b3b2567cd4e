"""Entry point of `python -m umg_conformance`, the same as `umg-conformance`."""

from umg_conformance.conformance_command import main

main()
