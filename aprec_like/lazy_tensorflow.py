"""TensorFlow imported on first use, for modules that define settings as well as computations.

`compare` and `report` read the settings of losses and must start without TensorFlow, whose import takes seconds.
"""

from __future__ import annotations

import importlib
from typing import Any


class _LazyModule:
    """Module that is imported when one of its attributes is first read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


tf: Any = _LazyModule("tensorflow")
