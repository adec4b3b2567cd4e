"""Entry point of `python -m umg_grpc.cli`, which is `umg`; the gateway starts its workers by it."""

from umg_grpc.cli import main

main()
