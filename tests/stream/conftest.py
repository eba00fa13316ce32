"""What needs the public corpora is not collected without them."""

from __future__ import annotations

from support.corpora import shared_root

collect_ignore = [] if shared_root() else ["test_http_conformance.py"]
