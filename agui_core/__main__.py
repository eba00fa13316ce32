"""`python -m agui_core`: the same as the `agui` command."""

from __future__ import annotations

import sys

from agui_core.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
