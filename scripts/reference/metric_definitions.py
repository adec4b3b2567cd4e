"""Reference page of the metrics at `/metrics`, from their definitions."""

from dataclasses import dataclass

from prometheus_client.metrics import MetricWrapperBase

from scripts.reference.markdown import code, table
from umg_grpc.service import metric_gauges, service_metrics
from umg_grpc.service.video_tasks import task_metrics


@dataclass(frozen=True)
class Metric:
    """Metric of the service."""

    name: str
    """Name in queries; that of a counter ends in `_total`."""
    kind: str
    labels: tuple[str, ...]
    description: str


def definitions() -> list[Metric]:
    """Return all metrics of the service, in the order of their names."""
    made = service_metrics.Metrics()
    task_metrics.TaskMetrics(made)
    counted = [
        Metric(_name(each), each._type, tuple(each._labelnames), each._documentation)
        for each in set(made._registry._names_to_collectors.values())
        if isinstance(each, MetricWrapperBase) and each._type != "gauge"
    ]
    levels = [
        Metric(each.name, "gauge", each.labels, each.help_text)
        for module in (metric_gauges, task_metrics)
        for each in vars(module).values()
        if isinstance(each, metric_gauges.Level)
    ]
    return sorted([*counted, *levels], key=lambda metric: metric.name)


def _name(metric: MetricWrapperBase) -> str:
    return f"{metric._name}_total" if metric._type == "counter" else metric._name


HEAD = """# Metrics

Every metric of `/metrics`, from its definition. [Metrics](../operations.md#metrics) has the values of the labels, and
the address and key of scrapers, [Alerts](../operations.md#alerts) the recommended alerts. With `metrics: {key_labels:
N}` in the config, the metrics of calls, tokens and cost have the label `key`, too.
"""


def page() -> str:
    """Return the reference page of all metrics, as Markdown."""
    rows = [[code(each.name), each.kind, ", ".join(map(code, each.labels)), each.description] for each in definitions()]
    return f"{HEAD}\n{table(('metric', 'kind', 'labels', 'meaning'), rows)}"
