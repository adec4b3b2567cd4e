"""Entry point of `python -m umg_grpc.cli`, the same as `umg`; the gateway starts its worker processes by it."""

from umg_grpc.cli import main

main()
