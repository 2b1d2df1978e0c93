"""The rules that no single module can hold by itself: who imports whom, what is banned, what must agree."""

import ast
import graphlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("pipeline", "model", "telemetry")
# whom each part may import besides itself; nobody imports cli
ALLOWED = {
    "cli": {"model", "pipeline", "telemetry"},
    "model": {"pipeline", "telemetry"},
    "pipeline": set(),
    "telemetry": set(),
}
BANNED = {
    "tensorflow.random.set_seed": "global random state is never touched",
    "tensorflow.keras.utils.set_random_seed": "global random state is never touched",
    "keras.utils.set_random_seed": "global random state is never touched",
    "numpy.random.seed": "global random state is never touched",
    "random.seed": "global random state is never touched",
    "time.time": "durations come from a monotonic clock",
    "pickle": "nothing from a file is ever executed",
}
# what a checkout holds besides the project: what a run, a build or a tool leaves
LEFT_OVERS = {"__pycache__", ".git", ".pytest_cache", ".ruff_cache", ".hypothesis", "build", "dist", "runs", "shared"}


def sources(part: str) -> list[Path]:
    return [ROOT / "cli.py"] if part == "cli" else sorted((ROOT / part).rglob("*.py"))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING"


def nodes(root: ast.AST, *, functions: bool = True, annotations: bool = True) -> Iterator[ast.AST]:
    """Every node below, on request without what stands inside functions or is only for a type checker."""
    for node in ast.iter_child_nodes(root):
        if not functions and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if not annotations and is_type_checking(node):
            continue
        yield node
        yield from nodes(node, functions=functions, annotations=annotations)


def imported(found: Iterator[ast.AST]) -> set[str]:
    """The modules that these nodes import, and the names taken from them: `from a import b` gives `a` and `a.b`."""
    names = set()
    for node in found:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def tops(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("part", ALLOWED)
def test_arrows_go_from_the_command_line_to_the_model_to_the_pipeline(part):
    paths = sources(part)
    assert paths
    for path in paths:
        others = tops(imported(nodes(tree_of(path)))) & set(ALLOWED) - {part}
        assert others <= ALLOWED[part], f"{path} imports {', '.join(sorted(others - ALLOWED[part]))}"


def test_telemetry_imports_tensorflow_and_keras_only_inside_functions():
    for path in sources("telemetry"):
        assert not tops(imported(nodes(tree_of(path), functions=False))) & {"tensorflow", "keras"}, path
    everywhere = set().union(*(imported(nodes(tree_of(path))) for path in sources("telemetry")))
    assert "tensorflow" in tops(everywhere)  # else this test looks at nothing


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_imports_itself_by_way_of_others(package):
    modules = {module_name(path): path for path in sources(package)}
    graph = {
        name: (imported(nodes(tree_of(path), annotations=False)) & set(modules)) - {name}
        for name, path in modules.items()
    }
    for name, used in graph.items():
        # a module takes things from where they are made: from its own package's front it would wait for itself
        assert package not in used, f"{name} imports its own package {package}"
    assert any(graph.values())
    tuple(graphlib.TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_exports_what_it_imports_and_nothing_else(package):
    tree = tree_of(ROOT / package / "__init__.py")
    taken = [
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    (exported,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and [getattr(target, "id", None) for target in node.targets] == ["__all__"]
    )
    assert len(set(exported)) == len(exported)
    assert set(exported) == {name for name in taken if not name.startswith("_")}


def banned_in(tree: ast.Module) -> list[str]:
    """What a module names of the banned, wherever it took the names from."""
    known = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                known[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else None
        elif isinstance(node, ast.ImportFrom):
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    used = imported(ast.walk(tree)) | {
        dotted(node, known) for node in ast.walk(tree) if isinstance(node, ast.Attribute | ast.Name)
    }
    return sorted(name for name in BANNED if name in used)


def dotted(node: ast.AST, known: dict[str, str | None]) -> str:
    """`tf.random.set_seed` as tensorflow.random.set_seed; "" for what was not imported."""
    if isinstance(node, ast.Name):
        return (known[node.id] or node.id) if node.id in known else ""
    if isinstance(node, ast.Attribute) and (before := dotted(node.value, known)):
        return f"{before}.{node.attr}"
    return ""


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_banned_is_used(package):
    for path in sources(package):
        found = banned_in(tree_of(path))
        assert not found, f"{path} uses {found[0]}: {BANNED[found[0]]}"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import tensorflow as tf\ntf.random.set_seed(1)", "tensorflow.random.set_seed"),
        ("from tensorflow import random as r\nr.set_seed(1)", "tensorflow.random.set_seed"),
        ("import numpy as np\nnp.random.seed(1)", "numpy.random.seed"),
        ("from numpy.random import seed\nseed(1)", "numpy.random.seed"),
        ("import random\ndef f():\n    random.seed(1)", "random.seed"),
        ("import time\nclock = time.time", "time.time"),
        ("from time import time", "time.time"),
        ("import pickle", "pickle"),
        ("from pickle import loads", "pickle"),
        ("import tensorflow as tf\ntf.keras.utils.set_random_seed(1)", "tensorflow.keras.utils.set_random_seed"),
    ],
)
def test_the_search_for_the_banned_sees_through_other_names(source, found):
    assert banned_in(ast.parse(source)) == [found]


def test_the_search_for_the_banned_leaves_the_rest_alone():
    source = "import time\nimport numpy as np\ntime.monotonic()\nnp.random.default_rng(1)\nmodel.random.seed\nseed = 1"
    assert banned_in(ast.parse(source)) == []


def test_every_module_says_what_it_is_for():
    for part in ALLOWED:
        for path in sources(part):
            docstring = ast.get_docstring(tree_of(path))
            # an empty file only makes a folder a package
            assert docstring or not path.read_text(encoding="utf-8").strip(), f"{path} has no docstring"


def test_the_version_and_the_newest_section_of_the_changelog_agree():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## \[(.+?)\](.*)$", changelog, re.MULTILINE)
    assert sections[0] == ("Unreleased", "")
    newest, date = sections[1]
    assert re.fullmatch(r" - \d{4}-\d{2}-\d{2}", date)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r'^version = "(.+)"$', project, re.MULTILINE) == [newest]


def texts() -> Iterator[tuple[Path, str]]:
    """Every file of the project that is text."""
    for path in sorted(ROOT.rglob("*")):
        place = path.relative_to(ROOT).parts
        if not path.is_file() or LEFT_OVERS & set(place) or any(part.endswith(".egg-info") for part in place):
            continue
        if (Path(ROOT, place[0]) / "pyvenv.cfg").exists():
            continue
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def test_no_file_names_a_path_of_the_machine_it_was_written_on():
    # the folders that exist everywhere say nothing of a machine
    common = {
        Path(name) for name in ("/", "/tmp", "/opt", "/srv", "/home", "/root", "/usr", "/usr/local", "/var", "/mnt")
    }
    places = {ROOT, ROOT.parent, Path.home(), Path(sys.prefix)} - common
    here = "|".join(re.escape(str(place)) for place in places)
    pattern = re.compile(rf"(?<![\w.$}}~-])(?:{here}|/home/\w+|/Users/\w+)(?![\w-])")
    found = []
    for path, text in texts():
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in pattern.finditer(text)]
    assert not found
