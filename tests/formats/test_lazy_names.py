"""Packages whose names are imported when they are first asked for."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest


@pytest.mark.parametrize("package", ["formats", "yfilter", "onyx"])
def test_every_name_of_a_package_is_there(package: str) -> None:
    module = import_module(package)
    assert module.__all__
    for name in module.__all__:
        assert getattr(module, name) is not None, name


@pytest.mark.parametrize("package", ["formats", "yfilter", "onyx"])
def test_another_name_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nonsense'"):
        import_module(package).nonsense  # noqa: B018


def test_a_name_loads_its_module_alone() -> None:
    asked = (
        "import sys; from formats import MessageLimits; before = 'formats.codec' in sys.modules; "
        "import formats; formats.encode; print(before, 'formats.codec' in sys.modules, "
        "'encode' in vars(formats))"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "False True True\n"
