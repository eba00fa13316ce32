"""JSON Patch (RFC 6902) over JSON Pointer (RFC 6901), on documents that are copied on write.

Promises:

- A patch applies whole or not at all (PATCH-1), and nothing that was handed out, handed in or shared is ever changed.
- `Document` copies a container on a patch's path at most once between two reads. An operation costs its path, its own
  value and the value it removes, never the document; `copy` costs a pointer, and one walk when it first meets a value.
- The bounds of `Limits` hold after every operation. Nodes are counted as a reader would meet them, so parts shared by
  `copy` count each time they occur: doubling a document by copying it into itself is refused after a few steps.
- Depth costs nothing but memory: nothing here recurses.

How: `_ours` knows the containers made since the last read. They are the top of the document (who owns a child owns its
parents), each occurs in it once, and only they are changed in place, with a step in an undo log. `copy` makes a value
occur twice, so it takes it out of `_ours` first. What is not ours never changes, so its size may be remembered by
identity; that is done where a value could otherwise be walked over and over, which is after `copy` and `move` only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from agui_core.errors import LimitExceeded, PatchError
from agui_core.limits import Limits
from agui_core.protocol.patch import check_patch
from agui_core.reducer.json_pointer import (
    CONTAINERS,
    Container,
    Key,
    UnresolvedError,
    array_index,
    describe,
    find,
    find_parent,
    quote,
    split,
)

__all__ = ["Document", "apply_patch"]

_Operation: TypeAlias = dict[str, Any]
_Undo: TypeAlias = Callable[[Any, Key, Any], None]
"""Takes one change of a container back: given the container, the key and what was there."""

_LONG = 64
"""Characters of text that count for one more node, so that copying a long text over and over is bounded as well."""
_SLOTS_REMEMBERED = 65_536
"""Members of remembered containers that are always allowed; twice the document's nodes come on top."""


def apply_patch(document: Any, operations: list[_Operation], *, limits: Limits | None = None) -> Any:
    """The document that `operations` make of `document`, which stays as it is; both share what did not change.

    Atomic. Costs the containers on the paths, not the document. Neither argument is changed, and the result must not
    be changed in place either, as it shares parts with both.

    `limits` (default `Limits()`) bounds the number of operations, how many nodes the patch may add, and how deep it
    may put a value; the document that was handed in is not counted.

    Raises `PatchError` if an operation is malformed (PATCH-2) or does not apply (PATCH-5), `LimitExceeded` otherwise.
    """
    _check(operations)
    patched = Document(document, limits, counted=False)
    patched.apply(operations)
    return patched.value


class Document:
    """A JSON value that patches change: copied on write, bounded, and cheap to read after every patch.

    `value` is a plain JSON value, which the document never changes in place. Making one counts its nodes, unless these
    do not count (`counted`); exceeding `limits` raises `LimitExceeded`.
    """

    __slots__ = ("_frozen", "_limits", "_log", "_nodes", "_ours", "_removed", "_root", "_sizes")

    def __init__(self, value: Any, limits: Limits | None = None, *, counted: bool = True) -> None:
        self._limits = limits or Limits()
        # The value sits in a list of our own, so that replacing the whole document is replacing an element.
        self._root: list[Any] = [None]
        self._nodes = 1
        self._ours: dict[int, Container] = {id(self._root): self._root}
        self._sizes = _Sizes()
        # What one patch leaves until it is known to apply:
        self._log: list[tuple[_Undo, Container, Key, Any]] = []
        self._removed: list[Container] = []
        self._frozen: list[Container] = []
        if counted:
            self.replace(value)
        else:
            self._root[0] = value

    @property
    def value(self) -> Any:
        """The current value. It never changes afterwards: the next patch copies the containers on its path. O(1)."""
        if len(self._ours) > 1:
            self._disown()
        return self._root[0]

    def replace(self, value: Any) -> None:
        """Make `value` the whole document. It is shared, not copied, and never changed in place. One walk over it.

        Raises `LimitExceeded` and changes nothing if it is nested too deep or has too many nodes.
        """
        self._nodes = _measure(value, self._limits, 0)
        self._root[0] = value
        self._disown()
        self._sizes = _Sizes()

    def copy(self) -> Document:
        """An independent document with the same value and limits. O(1): both sides copy on write from here on."""
        twin = Document(None, self._limits)
        twin._root[0] = self.value
        twin._nodes = self._nodes
        return twin

    def apply(self, operations: list[_Operation], *, object_only: bool = False) -> None:
        """Apply a patch, whole or not at all (PATCH-1).

        `operations` are well-formed, as those of a decoded event are (`agui_core.protocol.patch.check_patch`).
        With `object_only` a patch whose result is not an object counts as one that does not apply (ACT-8).

        Raises `PatchError` if an operation does not apply (PATCH-5), and `LimitExceeded` (`nesting`, `nodes`,
        `patch_operations`). The document is then equal to what it was; members that the patch had taken out of an
        object may now come last in it.
        """
        self._run(operations, object_only)
        for container in self._removed:
            self._nodes -= self._release(container)
        self._removed.clear()

    # Running a patch

    def _run(self, operations: list[_Operation], object_only: bool) -> None:
        if len(operations) > self._limits.patch_operations:
            raise LimitExceeded(
                f"the patch has {len(operations)} operations, the limit is {self._limits.patch_operations}",
                limit="patch_operations",
            )
        nodes = self._nodes
        limit = self._limits.nodes
        index = 0
        try:
            for operation in operations:
                self._APPLY[operation["op"]](self, operation)
                if self._nodes > limit:
                    self._settle()
                index += 1
            if object_only and not isinstance(self._root[0], dict):
                raise PatchError(f"the patch would leave {describe(self._root[0])}, not an object [ACT-8]")
        except UnresolvedError as refusal:
            self._roll_back(nodes)
            raise PatchError(_explain(index, operations[index], refusal.reason), operation=index) from None
        except BaseException:  # a limit, or an interrupt: whatever it is, no half of a patch stays
            self._roll_back(nodes)
            raise
        self._log.clear()
        self._frozen.clear()

    def _roll_back(self, nodes: int) -> None:
        if self._log:
            for undo, container, key, old in reversed(self._log):
                undo(container, key, old)
            for container in self._frozen:  # undone in place, so what was remembered may be wrong
                self._sizes.forget(container)
            self._disown()  # copies may have been made of what has now left the document
        self._nodes = nodes
        self._log.clear()
        self._removed.clear()
        self._frozen.clear()

    def _settle(self) -> None:
        """Take what was removed off the count before the patch is through, as the limit depends on it."""
        for container in self._removed:
            self._nodes -= self._size(container)[0]
        self._removed.clear()
        if self._nodes > self._limits.nodes:
            raise _too_many_nodes(self._limits)

    # The six operations

    def _add(self, operation: _Operation) -> None:
        tokens = split(operation["path"])
        self._insert(tokens, operation["value"])
        self._admit(operation["value"], len(tokens))

    def _remove(self, operation: _Operation) -> None:
        tokens = split(operation["path"])
        if tokens:
            self._discard(self._take(tokens))
        else:  # PATCH-7
            self._set(self._root, 0, None)
            self._nodes += 1

    def _replace(self, operation: _Operation) -> None:
        tokens = split(operation["path"])
        parents, keys = find(self._root, tokens)
        self._set(self._own(parents, keys), keys[-1], operation["value"])
        self._admit(operation["value"], len(tokens))

    def _move(self, operation: _Operation) -> None:
        source, target = split(operation["from"]), split(operation["path"])
        if source == target:
            find(self._root, source)
            return
        if target[: len(source)] == source:
            raise UnresolvedError("a value cannot be moved into itself")
        value = self._take(source)
        self._insert(target, value)
        if len(target) > len(source) and isinstance(value, CONTAINERS):
            _check_depth(len(target) + self._size(value)[1], self._limits)

    def _copy(self, operation: _Operation) -> None:
        target = split(operation["path"])
        parents, keys = find(self._root, split(operation["from"]))
        value = parents[-1][keys[-1]]
        nodes, height = self._size(value) if isinstance(value, CONTAINERS) else (_leaf(value), 0)
        self._insert(target, value)
        _check_depth(len(target) + height, self._limits)
        self._nodes += nodes

    def _test(self, operation: _Operation) -> None:
        parents, keys = find(self._root, split(operation["path"]))
        found, wanted = parents[-1][keys[-1]], operation["value"]
        if not _equal(found, wanted):
            raise UnresolvedError(f"the value there, {describe(found)}, is not equal to {describe(wanted)}")

    _APPLY: ClassVar[dict[str, Callable[[Document, _Operation], None]]] = {
        "add": _add,
        "remove": _remove,
        "replace": _replace,
        "move": _move,
        "copy": _copy,
        "test": _test,
    }

    # Changing, with a step in the log for each change

    def _disown(self) -> None:
        """From here on nothing but the root's list may be changed in place."""
        self._ours = {id(self._root): self._root}

    def _own(self, parents: list[Container], keys: list[Key]) -> Container:
        """The last of `parents`, to be changed in place: it and those above it are copied unless they are ours."""
        ours = self._ours
        first = len(parents)  # the place of the first that is not ours; the root's list always is
        while id(parents[first - 1]) not in ours:
            first -= 1
        owner = parents[first - 1]
        for place in range(first, len(parents)):
            parent, key = parents[place], keys[place - 1]
            made = parent.copy()
            ours[id(made)] = made
            if self._frozen:  # then `parent` may have been ours, and have changed, in this very patch
                self._log.append((_undo_set, owner, key, parent))
            owner[key] = made
            owner = made
        return owner

    def _set(self, owner: Any, key: Key, value: Any) -> None:
        old = owner[key]
        owner[key] = value
        self._log.append((_undo_set, owner, key, old))
        self._discard(old)

    def _insert(self, tokens: list[str], value: Any) -> None:
        """Put `value` where `add` puts it."""
        if not tokens:
            self._set(self._root, 0, value)
            return
        parents, keys = find_parent(self._root, tokens)
        last = parents[-1]
        if isinstance(last, dict):
            key: Key = tokens[-1]
            exists = key in last
        else:
            key = len(last) if tokens[-1] == "-" else array_index(tokens, len(tokens) - 1, len(last) + 1)
            exists = False
        owner = self._own(parents, keys)
        if exists:
            self._set(owner, key, value)
            return
        if isinstance(owner, dict):
            owner[key] = value
        else:
            owner.insert(key, value)
        self._log.append((_undo_insert, owner, key, None))

    def _take(self, tokens: list[str]) -> Any:
        """Take the value at `tokens`, which is not the root, out of its container."""
        parents, keys = find(self._root, tokens)
        owner, key = self._own(parents, keys), keys[-1]
        value = owner.pop(key)
        self._log.append((_undo_set if isinstance(owner, dict) else _undo_pop, owner, key, value))
        return value

    # Counting

    def _admit(self, value: Any, depth: int) -> None:
        """Count a value that came with the patch and now sits inside `depth` containers."""
        self._nodes += _measure(value, self._limits, depth) if isinstance(value, CONTAINERS) else _leaf(value)

    def _discard(self, old: Any) -> None:
        """Note that `old` is no longer in the document. Containers are counted when the patch is known to apply."""
        if isinstance(old, CONTAINERS):
            self._removed.append(old)
        else:
            self._nodes -= _leaf(old)

    def _release(self, container: Container) -> int:
        """Forget that anything in `container`, which left the document, is ours; how many nodes it has."""
        nodes = 1
        stack = [container]
        while stack:
            here = stack.pop()
            known = self._sizes.known(here)
            if known:
                nodes += known[0] - 1
                continue
            self._ours.pop(id(here), None)
            nodes += _members(here)
            stack += _inner(here)
        return nodes

    def _size(self, container: Container) -> tuple[int, int]:
        """Nodes and height of a part of the document. From then on nothing in it is ours."""
        stack = [container]
        while stack:
            here = stack.pop()
            if self._ours.pop(id(here), None) is not None:
                self._frozen.append(here)
                stack += _inner(here)
        return self._sizes.measure(container, room=_SLOTS_REMEMBERED + 2 * max(self._nodes, 0))


class _Sizes:
    """Nodes and heights of containers that never change again, by identity.

    What is remembered is kept alive, so all is forgotten when it holds more members than there is room for.
    """

    __slots__ = ("_known", "_slots")

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int, Container]] = {}
        self._slots = 0

    def known(self, container: Container) -> tuple[int, int, Container] | None:
        return self._known.get(id(container))

    def forget(self, container: Container) -> None:
        self._known.pop(id(container), None)

    def measure(self, top: Container, room: int) -> tuple[int, int]:
        """Nodes (with `top`, shared parts each time) and height of `top`. Costs its containers not yet known."""
        if self._slots > room:
            self._known.clear()
            self._slots = 0
        known = self._known
        stack = [top]
        while stack:
            here = stack[-1]
            if id(here) in known:
                stack.pop()
                continue
            inner = _inner(here)
            unknown = [child for child in inner if id(child) not in known]
            if unknown:  # they come first, then `here` again
                stack += unknown
                continue
            sizes = [known[id(child)] for child in inner]
            nodes = 1 + _members(here) - len(inner) + sum(size[0] for size in sizes)
            known[id(here)] = (nodes, 1 + max((size[1] for size in sizes), default=0), here)
            self._slots += 1 + len(here)
        return known[id(top)][:2]


# Steps back


def _undo_set(container: Any, key: Key, old: Any) -> None:
    container[key] = old


def _undo_insert(container: Any, key: Key, _: Any) -> None:
    del container[key]


def _undo_pop(container: Any, key: Key, old: Any) -> None:
    container.insert(key, old)


# Values


def _leaf(value: Any) -> int:
    """The nodes that a scalar, or a container without its members, counts for: long text is more than one."""
    return 1 + len(value) // _LONG if isinstance(value, str) else 1


def _members(container: Container) -> int:
    """The nodes that the members of `container` count for, as leaves."""
    members = container.values() if isinstance(container, dict) else container
    return len(container) + sum([len(member) // _LONG for member in members if isinstance(member, str)])


def _inner(container: Container) -> list[Container]:
    """The containers that are members of `container`."""
    members = container.values() if isinstance(container, dict) else container
    return [member for member in members if isinstance(member, CONTAINERS)]


def _measure(value: Any, limits: Limits, depth: int) -> int:
    """The number of nodes of a value that sits inside `depth` containers; gives up as soon as a limit is exceeded."""
    nodes = _leaf(value)
    level = [value] if isinstance(value, CONTAINERS) else []
    while level:
        depth += 1
        _check_depth(depth, limits)
        below: list[Container] = []
        for container in level:
            nodes += _members(container)
            if nodes > limits.nodes:
                raise _too_many_nodes(limits)
            below += _inner(container)
        level = below
    return nodes


def _check_depth(depth: int, limits: Limits) -> None:
    if depth > limits.nesting:
        raise LimitExceeded(f"the document would have more than {limits.nesting} nested containers", limit="nesting")


def _too_many_nodes(limits: Limits) -> LimitExceeded:
    return LimitExceeded(f"the document would hold more than {limits.nodes} JSON values", limit="nodes")


def _equal(left: Any, right: Any) -> bool:
    """JSON equality (PATCH-8): numbers by value, `true` and `false` apart from them, members in any order."""
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if one is other:
            continue
        if isinstance(one, dict):
            if not isinstance(other, dict) or one.keys() != other.keys():
                return False
            pairs += [(member, other[name]) for name, member in one.items()]
        elif isinstance(one, list):
            if not isinstance(other, list) or len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif isinstance(one, bool) or isinstance(other, bool) or one != other:
            return False
    return True


# Words


def _check(operations: list[_Operation]) -> None:
    """Refuse what is no patch (PATCH-2)."""
    if not isinstance(operations, list):
        raise PatchError(f"a patch is an array of operations, not {describe(operations)} [PATCH-2]")
    for index, operation in enumerate(operations):
        if not isinstance(operation, dict):
            raise PatchError(f"operation {index} is {describe(operation)}, not an object [PATCH-2]", operation=index)
    try:
        check_patch(operations)
    except ValueError as error:
        raise PatchError(f"{error} [PATCH-2]") from None


def _explain(index: int, operation: _Operation, reason: str) -> str:
    path = quote(operation["path"])
    where = f"from {quote(operation['from'])} to {path}" if operation["op"] in ("move", "copy") else f"at {path}"
    return f"operation {index} (`{operation['op']}` {where}) does not apply: {reason} [PATCH-5]"
