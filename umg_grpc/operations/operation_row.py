"""Row of an operation: the facts by which the gateway serves the operation. A row is data and imports no codec."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from google.protobuf.message import Message

from umg_grpc.knowledge.price_calculation import Prices, Unit
from umg_grpc.v1 import pb
from umg_grpc.wire.provider_protocols import ProviderProtocol

if TYPE_CHECKING:
    from umg_grpc.wire.unary_format_interface import UnaryFace, UnaryProviderFormat

ModelOperation: TypeAlias = "pb.ModelOperation.ValueType"
RequestT_co = TypeVar("RequestT_co", bound=Message, covariant=True)
ResponseT_co = TypeVar("ResponseT_co", bound=Message, covariant=True)


def no_usage(message: Message) -> pb.Usage:
    """Return an empty usage, for a request or response that determines none."""
    return pb.Usage()


def no_additions(request: Message, usage: pb.Usage, prices: Prices) -> None:
    """Leave the usage of a call unchanged, for an operation that adds nothing to it."""


def no_texts(request: Message) -> Iterable[str]:
    """Return no texts, for a request that contains none."""
    return ()


@dataclass(frozen=True)
class AttemptTelemetry:
    """Names of an operation in the spans and metrics of its attempts."""

    name: str
    """Value of `gen_ai.operation.name`: of OpenTelemetry's conventions, or one of ours where they have none."""
    durations: str
    """Histogram of the durations of attempts."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Operation(Generic[RequestT_co, ResponseT_co]):
    """Operation of models, for example reranking. A field that does not apply to it is stated as None or empty."""

    value: ModelOperation
    """Value of the schema: in model lists, usage records and routes to channels."""
    scope: str
    """Permission of keys, and name in the config and on the command line. Operations granted together share one."""
    verb: str
    """Phrase for errors and commands ("rerank documents"); "" if another operation's method calls this one."""
    results: str
    """Plural noun of the results of a call ("rankings"), for reasons in conversions of configs."""
    service: str
    methods: tuple[str, ...]
    """Methods of the service that call a channel for the operation; empty if `verb` is."""
    protocols: Mapping[str, ProviderProtocol]
    """Providers' protocols in which channels are called for it, by name."""
    listed_as: tuple[str, ...]
    """Words for it in the model lists of providers: kinds of models, or methods by which a model is called."""
    id_part: str
    """Part of the ids of its models, in lower case, where a list has no types; "" for an operation without one."""
    model_field: str
    """Field of `pb.Model` with the properties that its models alone have; "" for an operation without one."""
    units: frozenset[Unit]
    """Units by which a call is charged: a model needs a price for one of them. Empty for operations without a price."""
    telemetry: AttemptTelemetry | None
    """Names in telemetry; None for an operation whose attempts have no spans."""
    request: type[RequestT_co]
    response: type[ResponseT_co]
    probe: RequestT_co | None
    """Cheapest request, by which a channel is checked; None for an operation that is too expensive for it."""

    @property
    def full_service(self) -> str:
        return f"umg.v1.{self.service}"

    @cached_property
    def name(self) -> str:
        """Name of the value in JSON and usage records: `generate_image`."""
        return pb.ModelOperation.Name(self.value).removeprefix("MODEL_OPERATION_").lower()


@dataclass(frozen=True, kw_only=True, eq=False)
class StreamedMethod(Generic[ResponseT_co]):
    """Second method of an operation; its response is a stream of messages."""

    name: str
    """Its name in the service, which is also one of the operation's methods."""
    request: type[Message]
    """Message with the request of the operation in its field `request`."""
    message: type[Message]
    messages: Callable[[ResponseT_co], Iterable[Message]]
    """response -> messages, for a provider that does not stream."""
    has_output: Callable[[Any], bool]
    """message -> whether it has output; one without can be held back."""
    usage: Callable[[Any], pb.Usage | None]
    """message -> usage that it states; None if it states none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class UnaryOperation(Operation[RequestT_co, ResponseT_co]):
    """Operation with one request and one response, which may be streamed; its row leads to all of its parts."""

    most_quantities: Callable[[RequestT_co, int], Mapping[Unit, int]]
    """(request, its size in bytes) -> largest billable quantities of a call. A token has at least one byte."""
    expected_usage: Callable[[RequestT_co], pb.Usage] = no_usage
    """request -> usage beyond text tokens, without reading a file: the charge if the process is killed in the call."""
    example: Callable[[RequestT_co], ResponseT_co] | str | None
    """request -> simulated response, or `module:name` of this function; None for an operation that is computed."""
    stream: StreamedMethod[ResponseT_co] | None = None
    """Method with a streamed response; None if there is none."""
    file_field: str = ""
    """Field of the request with a file, which `source` does not have; "" without one."""
    usage: Callable[[ResponseT_co], pb.Usage] = no_usage
    """response -> usage of the call, 0 tokens if the provider states none; unused with a pipeline class."""
    counted_texts: Callable[[RequestT_co], Iterable[str]] = no_texts
    """request -> texts whose tokens are counted for a price of tokens, if the provider states none."""
    add_usage: Callable[[RequestT_co, pb.Usage, Prices], None] = no_additions
    """(request, usage, prices) -> None: adds, in place, priced units that only the request states. May read a file."""
    simulated: Mapping[str, str] = field(default_factory=dict)
    """Id of a model of the simulated provider in the built-in config -> its price there, in YAML."""
    paths: Mapping[str, str]
    """Path of the HTTP API -> name of the wire format that it has."""
    deployment_paths: Collection[str] = ()
    """Those of `paths` that Azure OpenAI has below a deployment, which names the model."""
    tag: str
    """Section of the OpenAPI document."""
    summary: str
    """Summary for callers in the OpenAPI document."""
    body_types: str
    """Location of the types of its HTTP bodies by wire format as `module:name`, for the OpenAPI document."""
    codecs: str
    """Location of its callers' wire formats by name as `module:name`, for `pkgutil.resolve_name`."""
    upstreams: str = ""
    """Location of its providers' wire formats by name; "" if callers have each of them, too."""

    @cached_property
    def faces(self) -> "Mapping[str, UnaryFace[RequestT_co, ResponseT_co]]":
        """Wire formats of callers by name, loaded at the first use."""
        faces: Mapping[str, UnaryFace[RequestT_co, ResponseT_co]] = resolve_name(self.codecs)
        return faces

    @cached_property
    def provider_formats(self) -> "Mapping[str, UnaryProviderFormat[RequestT_co, ResponseT_co]]":
        """Wire formats of providers by name, loaded at the first use."""
        table = self.upstreams or self.codecs
        formats: Mapping[str, UnaryProviderFormat[RequestT_co, ResponseT_co]] = resolve_name(table)
        return formats
