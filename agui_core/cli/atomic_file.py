"""`AtomicFile`: a file that is written as a whole or not at all. It may be the file that is read."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from contextlib import ExitStack
from types import TracebackType
from typing import IO

__all__ = ["AtomicFile"]


class AtomicFile:
    """A context manager. `keep` makes the text in `file` the content of `path`; without it nothing changes.

    The text stands in the same folder until then, so that a full disk loses nothing. The mode stays, and a symbolic
    link too. A pipe, a device, or a file in a folder that takes no new files cannot be replaced: `keep` writes it.

    Raises: `OSError`.
    """

    file: IO[bytes]

    def __init__(self, path: str) -> None:
        self._path = path
        self._beside: str | None = None
        self._open = ExitStack()

    def __enter__(self) -> AtomicFile:
        target = os.path.realpath(self._path)
        folder = os.path.dirname(target)
        exists = os.path.exists(self._path)
        if exists and not (os.path.isfile(target) and os.access(folder, os.W_OK)):
            self.file = self._open.enter_context(tempfile.TemporaryFile())
            return self
        if exists:
            open(target, "r+b").close()  # refuses a file that may not be written
        beside = os.path.join(folder, f".agui-{secrets.token_hex(8)}")
        self.file = self._open.enter_context(open(beside, "xb"))
        self._beside = beside
        if exists:
            shutil.copymode(target, beside)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):  # a write that failed before fails again here
            self._open.close()
        if self._beside is not None:
            os.unlink(self._beside)

    def keep(self) -> None:
        """Make `file` the content of `path`."""
        if self._beside is None:
            self.file.seek(0)
            with open(self._path, "wb") as target:
                shutil.copyfileobj(self.file, target)
            return
        self.file.close()
        os.replace(self._beside, os.path.realpath(self._path))
        self._beside = None
