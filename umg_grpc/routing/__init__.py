"""Routing: from a model id to the channels that serve it. Pure, except for the round-robin state.

Modules: `router` resolves models and selects channels, `channel_order` ranks the channels of a call, `channel_target`
describes the operations of a channel for a model, `caller_visible_models` the model as listed to callers,
`unknown_model_names` the names that are no model.
"""

from umg_grpc.config.channel_section import OPERATION_PROTOCOLS
from umg_grpc.operations import ModelOperation
from umg_grpc.routing.caller_visible_models import PublicModel, Resolved, under_name
from umg_grpc.routing.channel_model_prices import distinct, has_costs, is_priced
from umg_grpc.routing.channel_order import ANY_ROUTE, RoutePreferences
from umg_grpc.routing.channel_target import GENERATE_VALUE, Target
from umg_grpc.routing.router import OPERATION_VERBS, Router
from umg_grpc.routing.uncalled_fallback_warnings import uncalled_fallbacks
from umg_grpc.routing.unknown_model_names import model_not_found, similar_names
from umg_grpc.routing.unpriced_model_report import PRICE_REMEDY, is_unpriced, shortened, unpriced_models
from umg_grpc.routing.unserved_model_warnings import unserved_models

__all__ = [
    "ANY_ROUTE",
    "GENERATE_VALUE",
    "OPERATION_PROTOCOLS",
    "OPERATION_VERBS",
    "PRICE_REMEDY",
    "ModelOperation",
    "PublicModel",
    "Resolved",
    "RoutePreferences",
    "Router",
    "Target",
    "distinct",
    "has_costs",
    "is_priced",
    "is_unpriced",
    "model_not_found",
    "shortened",
    "similar_names",
    "uncalled_fallbacks",
    "under_name",
    "unpriced_models",
    "unserved_models",
]
