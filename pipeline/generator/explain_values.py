"""What an expression of a source is worth without running it: literals, arithmetic on numbers, names bound once."""

from __future__ import annotations

import ast
import operator
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Folder", "Unknown", "bound_once", "constants_of", "fold_expression"]

_MOST_EXPONENT = 64
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_SIGNS: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}


@dataclass(frozen=True)
class Unknown:
    """A value that the file does not show.

    Attributes:
        text: how the file spells it.
    """

    text: str

    def __repr__(self) -> str:
        return self.text


def fold_expression(text: str) -> Any:
    """The value of a literal or of arithmetic on numbers, as in `1/255` or `0.5, 1.5`; otherwise `Unknown`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Folder({}).value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Unknown(text)


def bound_once(tree: ast.AST) -> dict[str, ast.expr]:
    """The right hand sides of the names that a source binds exactly once, by a plain assignment."""
    values: dict[str, ast.expr] = {}
    bindings: Counter[str] = Counter()
    for node in ast.walk(tree):
        bindings.update(_bound_names(node))
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)) if node.value:
                values[name] = node.value
    return {name: value for name, value in values.items() if bindings[name] == 1}


def constants_of(tree: ast.AST) -> dict[str, ast.expr]:
    """Those of them that nothing changes in place."""
    changed: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name)):  # a list's append, a dictionary's update
                changed.add(name)
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                changed.add(name)
    return {name: value for name, value in bound_once(tree).items() if name not in changed}


def _bound_names(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(ctx=ast.Store() | ast.Del()):
            return [node.id]
        case ast.arg():
            return [node.arg]
        case ast.alias():
            return [(node.asname or node.name).split(".")[0]]
        case ast.Global() | ast.Nonlocal():
            return node.names
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar() if node.name:
            return [node.name]
    return []


class Folder:
    """Values of expressions that need no running."""

    def __init__(self, constants: Mapping[str, ast.expr]) -> None:
        self._constants = constants
        self._open: set[str] = set()

    def value(self, node: ast.expr) -> Any:
        """A value whose unknown parts make it `Unknown` as a whole."""
        try:
            return self._fold(node)
        except (_NotFolded, ArithmeticError, TypeError, ValueError):
            return Unknown(ast.unparse(node))

    def mapping(self, node: ast.expr) -> dict[str, Any] | None:
        """What `**node` brings, or None if the file does not show it."""
        node = self._constants.get(node.id, node) if isinstance(node, ast.Name) else node
        if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
            return {str(key.value): self.value(item) for key, item in zip(node.keys, node.values, strict=True)}
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "dict" and not node.args:
            if all(keyword.arg for keyword in node.keywords):
                return {keyword.arg: self.value(keyword.value) for keyword in node.keywords}
        return None

    def _fold(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Tuple():
                return tuple(self._fold(item) for item in node.elts)
            case ast.List():
                return [self._fold(item) for item in node.elts]
            case ast.UnaryOp() if type(node.op) in _SIGNS:
                return _SIGNS[type(node.op)](_number(self._fold(node.operand)))
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                left, right = _number(self._fold(node.left)), _number(self._fold(node.right))
                if isinstance(node.op, ast.Pow) and max(abs(left), abs(right)) > _MOST_EXPONENT:
                    raise _NotFolded
                return _ARITHMETIC[type(node.op)](left, right)
            case ast.Name() if node.id in self._constants and node.id not in self._open:
                return self._named(node.id)
        raise _NotFolded

    def _named(self, name: str) -> Any:
        self._open.add(name)  # a = b, b = a
        try:
            return self._fold(self._constants[name])
        finally:
            self._open.discard(name)


class _NotFolded(Exception):
    pass


def _number(value: Any) -> Any:
    if not isinstance(value, int | float):
        raise _NotFolded
    return value
