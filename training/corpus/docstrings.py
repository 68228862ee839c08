"""Docstrings of Python source, read from its syntax tree; nothing is imported."""

import ast
import warnings
from collections.abc import Iterator

_OWNERS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(source: bytes) -> Iterator[str]:
    """Yields the docstrings of a file in its order: of the module, its classes, functions and methods.

    Also what NumPy attaches later (`add_newdoc(place, name, text)`), and the texts of `topics = {…}` of `pydoc_data`.
    Source that this Python cannot parse yields nothing.
    """
    if b'"""' not in source and b"'''" not in source and b"topics = {" not in source:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Invalid escapes in other people's strings.
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):
            return
    yield from _docstrings_of(tree)


def _docstrings_of(owner: ast.AST) -> Iterator[str]:
    if isinstance(owner, _OWNERS) and (text := ast.get_docstring(owner, clean=False)):
        yield text
    for node in ast.iter_child_nodes(owner):
        if isinstance(node, (*_OWNERS, ast.If, ast.Try, ast.With)):
            yield from _docstrings_of(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield from _added_docs(node.value)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and _is_topics(node):
            yield from _texts(node.value.values)


def _added_docs(call: ast.Call) -> Iterator[str]:
    if getattr(call.func, "id", getattr(call.func, "attr", "")) != "add_newdoc":
        return
    for part in call.args[2:]:
        yield from _texts(part.elts[1:] if isinstance(part, ast.Tuple) else [part])


def _is_topics(node: ast.Assign) -> bool:
    return [getattr(target, "id", "") for target in node.targets] == ["topics"]


def _texts(nodes: list[ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
