"""The house: rooms that know only those before them, files that stay short, names that mean one thing."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "agui_core"
ROOMS = ["protocol", "wire", "reducer", "tools", "stream", "cli"]
LONGEST = 500
"""Lines of a file."""
OWN = {"copy", "restore", "__init__", "from_input"}
"""Methods that make an object of their own class, and so may reach into one that is not `self`."""


def modules() -> dict[str, ast.Module]:
    """The syntax tree of each module by its dotted name."""
    trees = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        trees[name] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


TREES = modules()


def imports(tree: ast.Module) -> Iterator[str]:
    """The package's own modules that a module imports anywhere in it, under TYPE_CHECKING and in functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.split(".")[0] == "agui_core":
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in TREES else node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in TREES)


def room_of(module: str) -> str:
    """The room that a module stands in; empty for what stands before the rooms."""
    _, _, rest = module.partition(".")
    room = rest.partition(".")[0]
    return room if room in ROOMS else ""


def test_a_room_knows_only_those_before_it() -> None:
    order = ["", *ROOMS]
    entrances = {"agui_core", "agui_core.__main__", "agui_core.testing"}
    upwards = [
        (module, other)
        for module, tree in TREES.items()
        if module not in entrances
        for other in imports(tree)
        if order.index(room_of(other)) > order.index(room_of(module))
    ]
    assert not upwards


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {module: {other for other in imports(tree) if other != module} for module, tree in TREES.items()}
    # A room's face imports what is in it; what imports the face is in another room.
    TopologicalSorter(graph).prepare()


def test_no_module_reaches_into_another_objects_underscores() -> None:
    found: list[str] = []

    def walk(node: ast.AST, module: str, inside: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = node.name
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("__"):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            inherited = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "super"
            if not own and not inherited and inside not in OWN:
                found.append(f"{module}:{node.lineno} {ast.unparse(node)}")
        for child in ast.iter_child_nodes(node):
            walk(child, module, inside)

    for module, tree in TREES.items():
        walk(tree, module, "")
    assert not found


def test_files_are_short_enough_to_read_at_once() -> None:
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert not {name: length for name, length in lengths.items() if length > LONGEST}


def test_a_class_name_is_used_once() -> None:
    names = Counter(node.name for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert not [name for name, uses in names.items() if uses > 1]


def test_what_only_reduces_loads_no_tools_no_streams_and_no_anyio() -> None:
    program = (
        "import sys, agui_core as agui\n"
        "assert 'msgspec' not in sys.modules\n"
        "reducer = agui.Reducer()\n"
        'reducer.apply(b\'{"type":"RUN_STARTED","threadId":"t","runId":"r"}\')\n'
        'reducer.apply(b\'{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}\')\n'
        "assert 'agui_core.reducer.partial_json.grammar' not in sys.modules\n"
        "reducer.tool_calls['c'].args, reducer.messages, reducer.state, reducer.changes(0)\n"
        "rooms = ('tools', 'stream', 'models', 'hub', 'cli')\n"
        "others = [f'agui_core.{room}' for room in rooms]\n"
        "print([name for name in sys.modules if name == 'anyio' or name in others])\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")
