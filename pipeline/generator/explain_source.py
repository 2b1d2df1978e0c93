"""Reads the ImageDataGenerator calls of a Python file with `ast`; nothing of the file is run.

An argument is known if the file spells it as a literal, as arithmetic on numbers, or by a name that is bound once to
one of these. Everything else stays `Unknown`.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.errors import InputError
from pipeline.generator.explain_calls import (
    CONSTRUCTOR,
    FLOW_METHODS,
    REST,
    FlowCall,
    GeneratorCall,
    RemovedCall,
    Source,
)
from pipeline.generator.explain_values import Folder, Unknown, bound_once, constants_of

__all__ = ["FlowCall", "GeneratorCall", "Source", "Unknown", "calls_in_source", "read_source"]

_CLASS = "ImageDataGenerator"
_GENERATOR_METHODS = ("fit_generator", "evaluate_generator", "predict_generator")
_QUEUE_ARGUMENTS = ("workers", "use_multiprocessing", "max_queue_size")
_OPTIMIZERS = tuple("SGD RMSprop Adagrad Adadelta Adam AdamW Adamax Nadam Ftrl Adafactor Lion".split())


def calls_in_source(text: str, filename: str) -> tuple[GeneratorCall, ...]:
    """The ImageDataGenerator calls of a Python source, in its order.

    Args:
        text: the source; it is parsed, never run.
        filename: what errors name.

    Returns:
        One a call, with the flows that are taken from it.

    Raises:
        InputError: if the text is not Python or makes no ImageDataGenerator.
    """
    return read_source(text, filename).generators


def read_source(text: str, filename: str) -> Source:
    """The same as `calls_in_source`, with what else a migration has to know.

    Raises:
        InputError: if the text is not Python or makes no ImageDataGenerator.
    """
    try:
        reader = _Reader(_parse(text, filename))
        source = reader.read()
    except (RecursionError, MemoryError):
        raise InputError(f"{filename}: is nested too deeply to be read") from None
    if not source.generators:
        raise InputError(f"{filename}: has no ImageDataGenerator(...) call; give the file that makes the generators")
    return source


def _parse(text: str, filename: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the file's own spelling, which is no concern here
            return ast.parse(text)
    except SyntaxError as error:
        raise InputError(f"{filename}: line {error.lineno or 1} is not Python: {error.msg}{_hint(filename)}") from None
    except ValueError as error:
        raise InputError(f"{filename}: is not Python: {error}") from None


def _hint(filename: str) -> str:
    return "; export the notebook as a script first" if filename.endswith(".ipynb") else ""


Scope = ast.AST
_SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_ROOTS = ("keras", "tensorflow", "tf", "tf_keras", "keras_preprocessing", "pipeline", "image", "preprocessing", _CLASS)


@dataclass(frozen=True)
class _Binding:
    """What a variable is at one place: one generator or several, or something else."""

    name: str
    scope: Scope
    position: tuple[int, int]
    generators: tuple[int, ...]


class _Reader:
    """Walks a tree once for the generators, then for what is called on them."""

    def __init__(self, tree: ast.Module) -> None:
        self._folder = Folder(constants_of(tree))
        self._aliases = bound_once(tree)
        self._parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self._nodes = sorted((n for n in ast.walk(tree) if hasattr(n, "lineno")), key=_position)
        self._imports = {
            (alias.asname or alias.name).split(".")[0]: _imported(node, alias)
            for node in self._nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        self._own = {node.name for node in self._nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        self._made: dict[ast.Call, int] = {}
        self._bound: list[_Binding] = []

    def read(self) -> Source:
        """All that the file says."""
        calls = [node for node in self._nodes if isinstance(node, ast.Call)]
        self._made = {node: index for index, node in enumerate(node for node in calls if self._is_class(node.func))}
        for node in self._nodes:  # in the file's order, so that a binding knows those before it
            self._bound.extend(self._bindings(node))
        flows, strays, fitted = self._called(calls)
        generators = tuple(
            GeneratorCall(
                line=node.lineno,
                name=next((b.name for b in self._bound if index in b.generators), None),
                arguments=self._arguments(node, CONSTRUCTOR),
                flows=tuple(flows[index]),
                is_fitted=index in fitted,
            )
            for node, index in self._made.items()
        )
        removed = sorted((call for node in calls for call in self._removed(node)), key=lambda call: call.line)
        return Source(generators=generators, removed=tuple(removed), strays=tuple(strays))

    def _called(self, calls: Sequence[ast.Call]) -> tuple[list[list[FlowCall]], list[FlowCall], set[int]]:
        """Each generator's flows, flows of no known generator, and the generators that are fitted."""
        flows: list[list[FlowCall]] = [[] for _ in self._made]
        strays: list[FlowCall] = []
        fitted: set[int] = set()
        for node in calls:
            if not isinstance(node.func, ast.Attribute):
                continue
            method, owners = node.func.attr, self._generators(node.func.value)
            if method == "fit":
                fitted.update(owners)
            if method not in FLOW_METHODS or (method == "flow" and not owners):
                continue  # many things have a method `flow`
            call = FlowCall(line=node.lineno, method=method, arguments=self._arguments(node, FLOW_METHODS[method]))
            for booked in [flows[owner] for owner in owners] or [strays]:
                booked.append(call)
        return flows, strays, fitted

    # -- names

    def _dotted(self, node: ast.expr) -> str:
        """The full name of a function as it was imported, such as tensorflow.keras.preprocessing.image.load_img."""
        if isinstance(node, ast.Name):
            if node.id in self._imports:
                return self._imports[node.id]
            target = self._aliases.get(node.id)
            is_alias = isinstance(target, ast.Attribute) and node.id not in ast.unparse(target).split(".")
            return self._dotted(target) if is_alias else node.id
        return f"{self._dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else "?"

    def _is_class(self, node: ast.expr) -> bool:
        parts = self._dotted(node).split(".")
        return parts[-1] == _CLASS and parts[0] in _ROOTS and parts[0] not in self._own

    def _scope(self, node: ast.AST) -> Scope:
        node = self._parents.get(node, node)
        while not isinstance(node, _SCOPES):
            node = self._parents[node]
        return node

    def _bindings(self, node: ast.AST) -> list[_Binding]:
        """What an assignment or a function's parameters bind."""
        match node:
            case ast.Assign():
                pairs = [pair for target in node.targets for pair in _pairs(target, node.value)]
            case ast.AnnAssign() | ast.NamedExpr() if node.value:
                pairs = [(node.target, node.value)]
            case ast.arg():
                return [_Binding(node.arg, self._scope(node), _position(node), ())]
            case _:
                return []
        end = (node.end_lineno, node.end_col_offset)
        return [
            _Binding(ast.unparse(target), self._scope(node), end, self._generators(value)) for target, value in pairs
        ]

    def _generators(self, node: ast.expr) -> tuple[int, ...]:
        """The generators that an expression may be."""
        match node:
            case ast.Call():
                return (self._made[node],) if node in self._made else ()
            case ast.IfExp():
                return self._generators(node.body) + self._generators(node.orelse)
            case ast.NamedExpr():
                return self._generators(node.value)
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return self._variable(node)
        return ()

    def _variable(self, node: ast.expr) -> tuple[int, ...]:
        """The same for a variable: as bound last before this place, in the innermost scope that binds it."""
        name, scope = ast.unparse(node), self._scope(node)
        while True:
            found = [b for b in self._bound if b.name == name and (b.scope is scope or not isinstance(node, ast.Name))]
            if found:
                before = [binding for binding in found if binding.position <= _position(node)]
                return (before[-1] if before else found[0]).generators
            if isinstance(scope, ast.Module):
                return ()
            scope = self._scope(scope)

    # -- arguments

    def _arguments(self, call: ast.Call, names: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for index, node in enumerate(call.args):
            if isinstance(node, ast.Starred):
                found[REST] = Unknown(ast.unparse(node))
                break
            found[names[index] if index < len(names) else f"argument {index + 1}"] = self._folder.value(node)
        for keyword in call.keywords:
            if keyword.arg:
                found[keyword.arg] = self._folder.value(keyword.value)
                continue
            shown = self._folder.mapping(keyword.value)
            found.update({REST: Unknown(f"**{ast.unparse(keyword.value)}")} if shown is None else shown)
        return found

    # -- what Keras 3 has no more

    def _removed(self, call: ast.Call) -> list[RemovedCall]:
        name = self._dotted(call.func).split(".")[-1]
        method = call.func.attr if isinstance(call.func, ast.Attribute) else None
        keywords = {keyword.arg: self._folder.value(keyword.value) for keyword in call.keywords if keyword.arg}
        found = [(method, f"{method}()", None)] if method in _GENERATOR_METHODS else []
        if name in _OPTIMIZERS and "lr" in keywords:
            found.append(("lr", f"{name}(lr={keywords['lr']!r})", keywords["lr"]))
        if name == "ModelCheckpoint" and "period" in keywords:
            found.append(("period", f"ModelCheckpoint(period={keywords['period']!r})", keywords["period"]))
        if method in ("fit", "evaluate", "predict", *_GENERATOR_METHODS):
            given = ", ".join(f"{argument}=" for argument in _QUEUE_ARGUMENTS if argument in keywords)
            found += [("workers", f"{method}({given})", None)] if given else []
        removed = [RemovedCall(line=call.lineno, kind=kind, text=text, value=value) for kind, text, value in found]
        dotted = self._dotted(call.func)
        if self._made.get(call) == 0 and dotted.startswith("keras."):
            removed.append(RemovedCall(line=call.lineno, kind="import", text=dotted))
        return removed


def _position(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _imported(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    if isinstance(node, ast.ImportFrom):
        return f"{'.' * node.level}{node.module or ''}.{alias.name}"
    return alias.name if alias.asname else alias.name.split(".")[0]


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Targets and values of an assignment, `a, b = c, d` taken apart."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]
