"""From a model id to the channels that serve it. Pure, save for whose turn it is.

`router` is what the service asks; `order` says who comes first, `target` what a channel can do with a model,
`described` what callers are told of one.
"""

from umg_grpc.config.channels import PROTOCOLS
from umg_grpc.routing.described import PublicModel, Resolved, under_name
from umg_grpc.routing.order import ANY, Wish
from umg_grpc.routing.router import LONGEST_ID, VERBS, Explained, Router, model_not_found
from umg_grpc.routing.target import EMBED, GENERATE, RERANK, Operation, Target

__all__ = [
    "ANY",
    "EMBED",
    "GENERATE",
    "LONGEST_ID",
    "PROTOCOLS",
    "RERANK",
    "VERBS",
    "Explained",
    "Operation",
    "PublicModel",
    "Resolved",
    "Router",
    "Target",
    "Wish",
    "model_not_found",
    "under_name",
]
