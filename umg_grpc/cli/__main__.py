"""`python -m umg_grpc.cli` is `umg`: how the gateway starts its own workers."""

from umg_grpc.cli.commands import main

main()
