"""Measures of `make shape`: each finds the fault that it is about, in small trees of code."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import grimp
import pytest

from scripts.shape import import_graph, names
from scripts.shape.callees import STEPS_MODULE, House, Module
from scripts.shape.measure import Measure
from scripts.shape.operation_names import misplaced, names_in
from scripts.shape.operation_words import OperationWord
from scripts.shape.parameter_walk import THE_PIPELINE, Walk, returns
from scripts.shape.servicers import lines_by_servicer

WORD = OperationWord("reranking", re.compile("rerank", re.IGNORECASE), ("a/rerank",), {})
NAMED = names_in("import a.rerank\n")
ROOM = {"a/rerank/request.py": NAMED}
WITH_EXCEPTION = replace(WORD, exceptions={"a/price.py": "ids of models"})


def graph(*imports: tuple[str, str]) -> grimp.ImportGraph:
    made = grimp.ImportGraph()
    for importer, imported in imports:
        made.add_import(importer=importer, imported=imported)
    return made


def test_rooms_are_packages_below_the_top_of_the_gateway_and_other_packages() -> None:
    assert import_graph.room("umg_grpc.wire.chat.request") == "umg_grpc.wire"
    assert import_graph.room("umg_grpc.lazy") == "umg_grpc.lazy"
    assert import_graph.room("http_facade.server.client_connections") == "http_facade"


def test_arrows_are_counted_between_rooms_and_once() -> None:
    made = graph(
        ("umg_grpc.wire.chat", "umg_grpc.base.errors"),
        ("umg_grpc.wire.native", "umg_grpc.base.errors"),
        ("umg_grpc.wire.native", "umg_grpc.wire.chat"),
        ("umg_grpc.wire.native", "msgspec"),
    )
    assert import_graph.arrows(made, ["umg_grpc.wire.chat", "umg_grpc.wire.native"]) == {
        ("umg_grpc.wire", "umg_grpc.base")
    }


def test_modules_that_import_each_other_are_one_circle() -> None:
    made = graph(("a.one", "a.two"), ("a.two", "a.three"), ("a.three", "a.one"), ("a.three", "a.ground"))
    assert import_graph.circles(made, ["a.one", "a.two", "a.three", "a.ground"]) == [["a.one", "a.three", "a.two"]]


def test_a_package_that_no_contract_names_is_in_no_layer() -> None:
    assert list(import_graph.without_layer(["umg_grpc.wire.chat", "umg_grpc.attic.old", "http_facade.app"])) == [
        "umg_grpc.attic"
    ]


def test_a_module_is_not_pure_by_its_own_imports_its_files_or_those_of_imported_modules() -> None:
    made = graph(("a.clock", "time"), ("a.over", "a.above"), ("a.above", "a.clock"), ("a.codec", "msgspec"))
    made.add_module("a.reader")
    texts = {
        "a.clock": "import time\n",
        "a.above": "import a.clock\n",
        "a.over": "import a.above\n",
        "a.codec": "import msgspec\n",
        "a.reader": "text = path.read_text()\n",
    }
    assert import_graph.pure_share(made, texts) == 20
    assert import_graph.pure_share(made, {**texts, "a.reader": "text = reader.text()\n"}) == 40


def test_a_base_name_of_two_files_is_found_outside_the_rows() -> None:
    files = ["umg_grpc/wire/chat/request.py", "umg_grpc/wire/native/request.py", "umg_grpc/cli/keys.py"]
    files += ["umg_grpc/operations/video_operation.py", "umg_grpc/knowledge/families/video_model_rules.py"]
    files += ["umg_grpc/access/keys.py", "umg_grpc/cli/__init__.py", "umg_grpc/access/__init__.py"]
    assert names.shared_names(map(Path, files)) == {
        "keys": [Path("umg_grpc/cli/keys.py"), Path("umg_grpc/access/keys.py")]
    }


def test_a_class_name_of_two_files_is_found_outside_the_formats_and_a_private_one_in_a_folder() -> None:
    texts = {
        "umg_grpc/store/one.py": "class Row: ...\nclass _Part: ...\n",
        "umg_grpc/store/two.py": "class _Part: ...\n",
        "http_facade/three.py": "class Row: ...\nclass _Part: ...\nclass Message: ...\n",
        "umg_grpc/wire/chat/four.py": "class Row: ...\nclass Message: ...\n",
        "umg_grpc/wire/native/five.py": "class Row: ...\nclass Message: ...\n",
    }
    assert names.shared_classes({Path(path): text for path, text in texts.items()}) == {
        "Row": [Path("umg_grpc/store/one.py"), Path("http_facade/three.py")],
        "_Part": [Path("umg_grpc/store/one.py"), Path("umg_grpc/store/two.py")],
    }


def test_constants_of_one_word_are_found_also_in_tuples() -> None:
    code = "PATH = 1\nTABLE: int = 2\nFIRST, (LAST, BOTH_ENDS) = 3, (4, 5)\nTWO_WORDS = 6\nlower = _PRIVATE = 7\n"
    assert names.constants_of_one_word(code) == ["PATH", "TABLE", "FIRST", "LAST"]


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("from a import RERANKING\n", True),
        ("table = {'rerank': 1}\n", True),
        ("async def rerank(): ...\n", True),
        ('"""Reranks."""\n', False),
        ("# rerank\nrank = 1\n", False),
    ],
    ids=["an import", "a text", "a function", "a docstring", "a comment"],
)
def test_a_file_names_an_operation_in_its_code_not_in_its_prose(code: str, named: bool) -> None:
    assert (misplaced(WORD, {"a/router.py": names_in(code), **ROOM}) == ["a/router.py"]) is named


def test_an_operation_is_named_in_its_rooms_and_in_exceptions_that_name_it() -> None:
    files = [
        "umg_grpc/operations/rerank.py",
        "a/rerank/request.py",
        "a/rerank.py",
        "a/price.py",
        "a/reranker.py",
    ]
    assert misplaced(WITH_EXCEPTION, dict.fromkeys(files, NAMED)) == ["a/rerank.py", "a/reranker.py"]
    assert misplaced(WITH_EXCEPTION, {"a/price.py": frozenset(), **ROOM}) == ["a/price.py: an exception without need"]
    assert misplaced(WITH_EXCEPTION, {"a/price.py": NAMED}) == ["a/rerank: a room without need"]


SERVICER = """
from a import checks
from a.rows import new_row, Row
from a.tasks import Tasks

class Servicer:
    def __init__(self, tasks: Tasks | None, others):
        self._tasks = tasks
        self._others = others

    async def Create(self, request, context):
        checks.check(request)
        wanted = request.parameters
        price = self._price(request.model)
        row = Row(number=1, wanted=wanted)
        await self._tasks.submit(row, price)
        await self._tasks.admit(wanted, price=price)
        return new_row(1, given=wanted)

    def _price(self, model):
        return len(model)
"""
CHECKS = """
def check(request):
    for each in request.items:
        _check_item(each)

def _check_item(item):
    print(item)
"""
ROWS = """
class Row:
    pass

def new_row(number, given):
    return Row(wanted=number)

def amount(wanted):
    return 1
"""
TASKS = """
from a.rows import amount

class Tasks:
    async def submit(self, row, price):
        amount(row.number)
        amount(row.wanted)

    async def admit(self, parameters, price):
        pass
"""


def walk(**texts: str) -> Walk:
    house = House([Module(f"a.{name}", ast.parse(text)) for name, text in texts.items()])
    made = Walk(house)
    made.enter(house.method("a.servicer", "Servicer", "Create"), "request")
    return made


def test_a_walk_enters_each_function_that_receives_the_value_or_a_part_of_it() -> None:
    made = walk(servicer=SERVICER, checks=CHECKS, rows=ROWS, tasks=TASKS)
    assert [function.name for function in made.entered] == [
        *("Servicer.Create", "check", "_check_item", "Servicer._price"),
        *("Tasks.submit", "amount", "Tasks.admit", "new_row"),
    ]
    assert made.stays() == ["a.servicer", "a.checks", "a.servicer", "a.tasks", "a.rows", "a.tasks", "a.rows"]
    assert returns(made.stays()) == 3


def test_a_walk_chooses_between_methods_of_one_name_by_annotations_alone() -> None:
    others = TASKS.replace("Tasks", "Others")
    made = walk(servicer=SERVICER, checks=CHECKS, rows=ROWS, tasks=TASKS, others=others)
    assert ("a.tasks" in made.stays(), "a.others" in made.stays()) == (True, False)
    without = SERVICER.replace(": Tasks | None", "")
    assert "a.tasks" not in walk(servicer=without, checks=CHECKS, rows=ROWS, tasks=TASKS, others=others).stays()


STEP_LIST = """
ORDER = (FIRST := Step("first"), SECOND := Step("second"), THIRD := Step("third"))
"""
PIPELINES = """
from a.stores import Store

class Pipeline:
    def __init__(self):
        self._store = Store()

    def _request_steps(self):
        return {THIRD: self._store.keep, FIRST: self._check}

    async def run(self, call):
        for step in (*self.early, *self.late):
            step(call)

    def _check(self, call):
        raise NotImplementedError
"""
PRICED = """
from a.pipelines import Pipeline
from a.checks import check

class Priced(Pipeline):
    def _request_steps(self):
        return {**super()._request_steps(), SECOND: self._price}

    def _check(self, call):
        check(call.request)

    def _price(self, call):
        self._add([cost for number, cost in enumerate(call.request.items)])

    def _add(self, costs):
        pass
"""
STORES = """
class Store:
    def keep(self, call):
        self._write(call.request)

    def _write(self, row):
        pass
"""
CALLS = """
from a.priced import Priced

class Servicer:
    def __init__(self, pipeline: Priced):
        self._pipeline = pipeline

    def Create(self, request, context):
        self._pipeline.run(Call(request=request))

class Call:
    pass
"""


def test_a_walk_enters_the_steps_of_a_pipeline_in_the_order_of_their_list() -> None:
    texts = {"pipelines": PIPELINES, "priced": PRICED, "checks": CHECKS, "stores": STORES, "servicer": CALLS}
    modules = [Module(f"a.{name}", ast.parse(text)) for name, text in texts.items()]
    house = House([*modules, Module(STEPS_MODULE, ast.parse(STEP_LIST))])
    made = Walk(house)
    made.enter(house.method("a.servicer", "Servicer", "Create"), "request")
    assert [function.name for function in made.entered] == [
        *("Servicer.Create", "Pipeline.run", "Priced._check", "check", "_check_item"),
        *("Priced._price", "Store.keep", "Store._write"),
    ]
    by_step = ["a.servicer", "a.pipelines", "a.priced", "a.checks", "a.priced", "a.stores"]
    assert (made.stays(), returns(made.stays())) == (by_step, 1)
    assert made.stays_beside_pipeline() == ["a.servicer", THE_PIPELINE, "a.checks"]


def test_a_walk_follows_the_items_of_the_value_in_loops_with_numbers_and_in_comprehensions() -> None:
    checks = """
def check(request):
    for number, each in enumerate(request.items):
        _check_item(each)
    return [_found(other) for _, other in enumerate(request.others)]

def _check_item(item):
    pass

def _found(item):
    pass
"""
    entered = walk(servicer=SERVICER, checks=checks, rows=ROWS, tasks=TASKS).entered
    assert [function.name for function in entered][1:4] == ["check", "_check_item", "_found"]


@pytest.mark.parametrize(
    ("measure", "holds"),
    [
        (Measure("rooms", 3, 3), True),
        (Measure("rooms", 4, 3), False),
        (Measure("pure core", 54.9, 55, "at least"), False),
        (Measure("constants", 900, bound="only counted"), True),
    ],
    ids=["at its limit", "over it", "below the least", "only counted"],
)
def test_a_measure_holds_within_its_limit(measure: Measure, holds: bool) -> None:
    assert measure.holds is holds
    assert measure.line().startswith("ok" if holds else "FAIL")


def test_a_measure_that_fails_names_its_places() -> None:
    assert Measure("loose modules", 1, places=["umg_grpc.attic"]).line().endswith("\n       umg_grpc.attic")


SERVICERS = """
class Servicer:
    def Read(self, request, context):
        return 1

class Report:
    def read(self, request):
        return 1
"""


def test_a_class_with_an_rpc_is_a_servicer() -> None:
    assert list(lines_by_servicer(ast.parse(SERVICERS))) == [("Servicer", 3)]
