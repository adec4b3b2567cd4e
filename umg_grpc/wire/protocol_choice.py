"""Choice of the protocol for a text request to a channel that has several: one in which the vendor accepts it."""

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.reasoning_effort_order import is_off
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import DecodedRequest, RequestNotes
from umg_grpc.wire.model_quirks import has_functions


def refusal_of(request: pb.GenerateRequest, quirks: Quirks, protocol: str) -> str:
    """Return why a provider would reject the request in a protocol, a phrase for operators; "" for no known reason."""
    if quirks.served is False:
        return f"the model has no {protocol}"
    if (tool := _refused_tool(request, quirks)) is not None:
        return f"the model has no such tool in {protocol}: {tool}"
    if quirks.chat_tools in {None, "always"} or not has_functions(request):
        return ""
    reasoning = request.reasoning
    stated = bool(reasoning.effort or reasoning.level or reasoning.mode or reasoning.HasField("budget_tokens"))
    match quirks.chat_tools:
        case "never":
            return "the model has no functions in chat"
        case "without_effort" if stated and not is_off(reasoning):
            return "the model has no functions beside an effort in chat"
        case "effort_none" if not (stated and is_off(reasoning)):
            return "the model has no functions while it reasons in chat"
        case _:  # accepted with this effort
            return ""


def _refused_tool(request: pb.GenerateRequest, quirks: Quirks) -> str | None:
    """Return the type of the first tool that the provider rejects in the responses protocol; None if it accepts all."""
    types, names = quirks.tool_types, quirks.custom_names
    if types is None and names is None:
        return None
    for tool in request.tools:
        kind = _type_of(tool)
        if (types is not None and kind not in types) or (names is not None and tool.custom.name not in {"", *names}):
            return kind
    return None


def _type_of(tool: pb.Tool) -> str:
    if tool.HasField("namespace"):
        return "namespace"
    declared = tool.function.declared
    return tool.opaque.type or (declared.type if declared.format == "responses" else str(tool.WhichOneof("kind")))


def fit_effort_to_functions(
    request: pb.GenerateRequest, notes: RequestNotes, quirks: Quirks, report: Report
) -> DecodedRequest[pb.GenerateRequest]:
    """Return a chat request whose effort is accepted beside functions, for a channel without another protocol."""
    if quirks.chat_tools not in {"without_effort", "effort_none"} or not refusal_of(request, quirks, "chat"):
        return DecodedRequest(request, notes)
    if quirks.chat_tools == "effort_none" and "none" not in (quirks.efforts or ("none",)):
        return DecodedRequest(request, notes)  # the model cannot stop reasoning, and its provider refuses the call
    fitted = pb.GenerateRequest()
    fitted.CopyFrom(request)
    fitted.reasoning.Clear()
    if quirks.chat_tools == "effort_none":
        fitted.reasoning.effort = "none"
    if request.HasField("reasoning") or fitted.reasoning.effort:
        report.drop("reasoning", f"effort {fitted.reasoning.effort}" if fitted.reasoning.effort else None)
    return DecodedRequest(fitted, notes.with_edited("reasoning"))
