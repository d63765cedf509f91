"""What the registry reads from a real app: config class, submodules found by name, and nothing swallowed."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

from better_compute.registry.reading import Reading

from .conftest import APPS, problems_of, spec_of

ReadApp = Callable[..., Reading]

API = """
    from __future__ import annotations
    from typing import TYPE_CHECKING
    from better_compute import ComputeViewSet, Empty, Input, Output, Resource, compute_method
    if TYPE_CHECKING:
        from better_compute import MethodContext

    class PokeInput(Input):
        tenant_id: str

    class Poked(Output):
        poked: str

    def tenant(input):
        return Resource("tenant", "t1")

    class NodeSpecs(ComputeViewSet):
        @compute_method(action="compute:gadgets:poke", kind="mutation", resource=tenant)
        def poke_twice(self, ctx: MethodContext, input: PokeInput) -> Poked:
            '''Poke it.

            Twice.
            '''
            return Poked(poked="x")

        @compute_method(action="compute:gadgets:read", kind="query", resource=tenant)
        def count(self, ctx) -> int:
            return 1
"""


def test_the_acme_plugin_reads_as_it_is_written() -> None:
    from better_compute import registry

    spec = registry.current().module("acme")
    assert (spec.plugin_id, spec.label, spec.path) == ("acme", "plg_acme", "example_project.acme_widgets")
    assert spec.migrations == ("acme/0001_widgets",)
    assert [method.dotted for method in spec.methods] == ["plugins.acme.widgets.poke", "plugins.acme.widgets.count"]
    assert [reconciler.name for reconciler in spec.reconcilers] == ["acme.widgets"]
    assert spec.self_check is not None
    assert spec.tenant_deleted is not None
    assert spec.start is None


def test_methods_take_their_types_from_annotations_and_their_wire_names_from_python(read_app: ReadApp) -> None:
    poke, count = spec_of(read_app({"api.py": API})).methods
    assert (poke.path, poke.dotted, poke.summary) == ("nodeSpecs/pokeTwice", "nodeSpecs.pokeTwice", "Poke it.")
    assert (poke.takes_input, poke.input_type.__name__, poke.output_type.__name__) == (True, "PokeInput", "Poked")
    assert (count.takes_input, count.input_type.__name__, count.output_type, count.kind) == (
        False,
        "Empty",
        int,
        "query",
    )


def test_a_package_of_that_name_is_a_submodule_too(read_app: ReadApp) -> None:
    files = {"api/__init__.py": "from .nodes import NodeSpecs", "api/nodes.py": API}
    assert len(spec_of(read_app(files)).methods) == 2


def test_only_classes_defined_in_the_submodule_count(read_app: ReadApp) -> None:
    files = {"reconcilers.py": "from example_project.acme_widgets.reconcilers import WidgetReconciler"}
    assert spec_of(read_app(files)).reconcilers == ()


def test_an_abstract_reconciler_is_a_base_and_not_hosted(read_app: ReadApp) -> None:
    source = """
        from abc import abstractmethod
        from better_compute import DONE, Reconciler

        class Base(Reconciler):
            @abstractmethod
            def target(self): ...
            def run(self, ctx, key): return DONE

        class Sync(Base):
            name = "gadgets.sync"
            def target(self): ...
    """
    assert [type(each).__name__ for each in spec_of(read_app({"reconcilers.py": source})).reconcilers] == ["Sync"]


def test_every_field_may_stand_in_its_submodule(read_app: ReadApp) -> None:
    files = {
        "extensions.py": """
            from better_compute import define_driver
            extensions = [define_driver("power", version="1", driver=object())]
        """,
        "command_kinds.py": "command_kinds = ()",
        "status_handlers.py": """
            from better_compute import ModuleStatusHandler
            status_handlers = [ModuleStatusHandler("devices", print)]
        """,
        "commands.py": """
            from better_compute import CliCommand
            commands = [CliCommand(name="prune", summary="Prune.", run=print)]
        """,
        "profiles.py": """
            from better_compute import ProfileDocument
            profiles = [ProfileDocument("gpu", "1", {})]
        """,
        "node_spec.py": "def node_spec(ctx, node): return {}",
        "self_check.py": "def self_check(ctx): return []",
        "lifecycle.py": "def start(ctx): ...\ndef stop(): ...",
        "tenancy.py": "def tenant_deleted(ctx, tenant_id): ...",
    }
    spec = spec_of(read_app(files))
    assert [extension.key for extension in spec.extensions] == ["driver:power@1"]
    assert [handler.section for handler in spec.status_handlers] == ["devices"]
    assert [command.name for command in spec.commands] == ["prune"]
    assert [profile.name for profile in spec.profiles] == ["gpu"]
    functions = (spec.node_spec, spec.self_check, spec.start, spec.stop, spec.tenant_deleted)
    assert [getattr(function, "__name__", None) for function in functions] == [
        "node_spec",
        "self_check",
        "start",
        "stop",
        "tenant_deleted",
    ]


def test_every_field_may_stand_on_the_config_class(read_app: ReadApp) -> None:
    config = dedent(APPS) + dedent("""
        from better_compute import DONE, CliCommand, Reconciler

        class Sync(Reconciler):
            name = "gadgets.sync"
            def run(self, ctx, key): return DONE

        Gadgets.reconcilers = [Sync]
        Gadgets.commands = [CliCommand(name="prune", summary="Prune.", run=print)]
        Gadgets.self_check = lambda self, ctx: [self.module_name]
    """)
    spec = spec_of(read_app({"apps.py": config}))
    assert [each.name for each in spec.reconcilers] == ["gadgets.sync"]
    assert [each.name for each in spec.commands] == ["prune"]
    assert spec.self_check is not None
    assert list(spec.self_check(None)) == ["gadgets"]  # type: ignore[arg-type, comparison-overlap]


@pytest.mark.parametrize("submodule", ["api", "reconcilers", "self_check", "lifecycle", "tenancy", "commands"])
def test_a_broken_import_inside_a_submodule_is_named_with_its_place(read_app: ReadApp, submodule: str) -> None:
    reading = read_app({f"{submodule}.py": "import no_such_package"})
    path = f"{reading.spec.path}.{submodule}"
    [(id, message, hint)] = problems_of(reading)
    assert id == "compute.E007"
    assert message.startswith(
        f"Module 'gadgets': importing {path} raised ModuleNotFoundError: No module named 'no_such_package' (/"
    )
    assert message.endswith(f"{path.replace('.', '/')}.py:1).")
    assert hint == f"Mend it; `manage.py shell -c '__import__(\"{path}\")'` shows the whole traceback."


def test_a_syntax_error_inside_a_submodule_is_named_with_its_place(read_app: ReadApp) -> None:
    [(id, message, _)] = problems_of(read_app({"api.py": "x = 1\ndef ("}))
    assert id == "compute.E007"
    assert "raised SyntaxError" in message
    assert message.endswith("api.py:2).")


def test_a_submodule_that_lacks_what_it_is_named_after_is_refused(read_app: ReadApp) -> None:
    reading = read_app({"commands.py": "", "self_check.py": "", "lifecycle.py": ""})
    path = reading.spec.path
    assert problems_of(reading) == [
        (
            "compute.E005",
            f"Module 'gadgets': {path}.commands defines no commands.",
            "Define `commands = [...]` in it, or remove the submodule.",
        ),
        (
            "compute.E005",
            f"Module 'gadgets': {path}.self_check defines no self_check.",
            "Define `def self_check(...)` in it, or remove the submodule.",
        ),
        (
            "compute.E005",
            f"Module 'gadgets': {path}.lifecycle defines no start or stop.",
            "Define `def start(...)` in it, or remove the submodule.",
        ),
    ]


def test_a_field_that_stands_in_both_places_is_refused(read_app: ReadApp) -> None:
    config = dedent(APPS) + "    commands = []\n"
    reading = read_app({"apps.py": config, "commands.py": "commands = []"})
    assert problems_of(reading) == [
        (
            "compute.E005",
            f"Module 'gadgets': commands stands both on the config class and in {reading.spec.path}.commands.",
            "Keep one of the two.",
        )
    ]


@pytest.mark.parametrize(
    ("line", "message", "mend"),
    [
        (
            "requires = 'inventory'",
            "requires is 'inventory', which is no sequence.",
            "Write requires as a list or a tuple, also for a single entry.",
        ),
        (
            "catalog = {'actions': []}",
            "catalog is {'actions': []}, which is no Catalog.",
            "Write catalog = Catalog(actions=[...], resource_types={...}).",
        ),
        ("self_check = 5", "self_check is 5, which is no function.", "Define `def self_check(...)`."),
        (
            "profiles = 5",
            "profiles is 5, which is no sequence.",
            "Write profiles as a list or a tuple, also for a single entry.",
        ),
        (
            "reconcilers = ['sync']",
            "reconcilers holds 'sync', which is no subclass of Reconciler.",
            "List classes, or define them in {path}.reconcilers.",
        ),
        (
            "options = dict",
            "options is <class 'dict'>, which is no msgspec.Struct type.",
            "Write options = MyOptions, a msgspec.Struct with a default for every field.",
        ),
    ],
)
def test_a_field_of_the_wrong_type_is_refused(read_app: ReadApp, line: str, message: str, mend: str) -> None:
    reading = read_app({"apps.py": dedent(APPS) + f"    {line}\n"})
    assert problems_of(reading) == [
        ("compute.E005", f"Module 'gadgets': {message}", mend.replace("{path}", reading.spec.path))
    ]


def test_a_reconciler_with_a_name_and_no_run_is_refused(read_app: ReadApp) -> None:
    source = """
        from better_compute import Reconciler
        class Sync(Reconciler):
            name = "gadgets.sync"
            def rum(self, ctx, key): ...
    """
    assert problems_of(read_app({"reconcilers.py": source})) == [
        (
            "compute.E005",
            "Module 'gadgets': reconciler Sync has a name but no run.",
            "Define run, or leave name to the classes that derive from it.",
        )
    ]


def test_a_reconciler_that_cannot_be_constructed_is_refused(read_app: ReadApp) -> None:
    source = """
        from better_compute import DONE, Reconciler
        class Sync(Reconciler):
            name = "gadgets.sync"
            def __init__(self, size): ...
            def run(self, ctx, key): return DONE
    """
    [(id, message, mend)] = problems_of(read_app({"reconcilers.py": source}))
    assert id == "compute.E005"
    assert message.startswith("Module 'gadgets': reconciler Sync cannot be constructed: TypeError(")
    assert mend == "Give it an __init__ without arguments, or none at all."


def _method(line: str, decorator: str = "") -> str:
    given = decorator or 'action="compute:gadgets:poke", kind="mutation", resource=tenant'
    return dedent(API) + f"\n    @compute_method({given})\n    {line}\n        ...\n"


SIGNATURE = "Write it as method(self, ctx, input: <Input>) -> <Output>, or method(self, ctx) -> <Output>."


@pytest.mark.parametrize(
    ("source", "message", "mend"),
    [
        (_method("def bad(self) -> int:"), "takes (self).", SIGNATURE),
        (
            _method("def bad(self, ctx, *, input: PokeInput) -> int:"),
            "takes (self, ctx, *, input: 'PokeInput').",
            SIGNATURE,
        ),
        (_method("def bad(self, ctx, input) -> int:"), "has no annotation for 'input'.", SIGNATURE),
        (_method("def bad(self, ctx, input: PokeInput):"), "has no annotation for 'return'.", SIGNATURE),
        (
            _method("def bad(self, ctx, input: Missing) -> int:"),
            "has an annotation for 'input' that cannot be resolved: name 'Missing' is not defined.",
            SIGNATURE,
        ),
        (
            _method("def bad(self, ctx, input: dict) -> int:"),
            "takes an input of <class 'dict'>, which is no Input.",
            SIGNATURE,
        ),
        (
            _method("def bad(self, ctx, input: Poked) -> int:"),
            "takes an input of Poked, which lets unknown fields pass.",
            "Derive it from Input.",
        ),
        (
            _method("async def bad(self, ctx) -> int:"),
            "is a coroutine or a generator; a method answers with a value.",
            "Write it with `def`, and with `return`.",
        ),
        (
            _method("def bad(self, ctx) -> ComputeViewSet:"),
            "has an annotation for 'return' that msgspec cannot carry: type "
            "<class 'better_compute.envelope.viewset.ComputeViewSet'> is not supported.",
            SIGNATURE,
        ),
        (
            _method("def bad(self, ctx) -> int:", 'action="compute:gadgets:poke", kind="write", resource=tenant'),
            "declares kind='write', which is neither 'mutation' nor 'query'.",
            "Write kind='mutation', or kind='query' for a method that writes nothing.",
        ),
        (
            _method("def bad(self, ctx) -> int:", 'action="compute:gadgets:poke", kind="query", resource="tenant"'),
            "declares resource='tenant', which is no function.",
            'Write resource=lambda input: Resource("tenant", input.tenant_id).',
        ),
    ],
)
def test_a_method_that_cannot_be_offered_as_it_is_written_is_refused(
    read_app: ReadApp, source: str, message: str, mend: str
) -> None:
    reading = read_app({"api.py": source})
    assert problems_of(reading) == [("compute.E047", f"Module 'gadgets': method NodeSpecs.bad {message}", mend)]
    assert len(reading.spec.methods) == 2


OPTIONS = """
    import msgspec
    from better_compute import ComputeModule

    class Options(msgspec.Struct, forbid_unknown_fields=True):
        size: int = 4

    class Gadgets(ComputeModule):
        name = "{path}"
        label = "{path}"
        module_name = "gadgets"
        options = Options
"""


def test_options_are_decoded_from_the_modules_own_settings(read_app: ReadApp) -> None:
    given = {"gadgets": {"size": 7}}
    assert spec_of(read_app({"apps.py": OPTIONS}, COMPUTE=given)).options.size == 7


def test_options_have_their_defaults_when_nothing_is_set(read_app: ReadApp) -> None:
    assert spec_of(read_app({"apps.py": OPTIONS}, COMPUTE={})).options.size == 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": "big"}, "Expected `int`, got `str` - at `$.size`."),
        ({"sise": 1}, "Object contains unknown field `sise`."),
    ],
)
def test_options_of_a_wrong_type_are_refused_with_their_path(
    read_app: ReadApp, given: dict[str, Any], message: str
) -> None:
    assert problems_of(read_app({"apps.py": OPTIONS}, COMPUTE={"gadgets": given})) == [
        (
            "compute.E070",
            f"Module 'gadgets': COMPUTE['gadgets'] in the settings: {message}",
            "Correct the key that the path names.",
        )
    ]


def test_options_for_a_module_that_declares_none_are_refused(read_app: ReadApp) -> None:
    assert problems_of(read_app({}, COMPUTE={"gadgets": {"size": 7}})) == [
        (
            "compute.E070",
            "Module 'gadgets': COMPUTE['gadgets'] is set, but the module declares no options.",
            "Remove it from the settings.",
        )
    ]
