"""``python -m benchmarks hour``: the commands of a page lead to the result that it prints."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from benchmarks.benchmark import WrongAnswers
from benchmarks.hour import Typed, follow_to_result, own_result
from tests.onyx.pages import ROOT
from tests.onyx.test_cli_network import Shell, shell

__all__ = ["shell"]


@pytest.fixture
def newcomer(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    return shell


PAGE = """
```xml title="a.xml"
<hour/>
```

```
$ echo '//hour' | onyx profile add - --wait
p1-k3v9q2mx
…
$ onyx subscribe p1-k3v9q2mx
```

```
$ onyx source register --name hour --key hour
s1-w7d4bz3h
…
$ onyx source publish s1-w7d4bz3h a.xml
```

```
<hour/>
```
"""


def test_a_page_leads_to_its_first_result(newcomer: Shell) -> None:
    follow_to_result(PAGE, newcomer)
    with pytest.raises(WrongAnswers, match="<hour/>"):
        follow_to_result(
            PAGE.replace("```\n<hour/>", "```\n<minute/>").replace("<hour/>", "<hour />"), newcomer
        )


def test_a_page_without_a_result_leads_nowhere(newcomer: Shell) -> None:
    with pytest.raises(WrongAnswers, match="no command of the page takes a result"):
        follow_to_result("```\n$ onyx source list\n```\n", newcomer)


def test_messages_of_ones_own(registration: str, newcomer: Shell) -> None:
    program = Path("onyx-here")
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m onyx "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "ONYX_REGISTRATION": registration, "PYTHONPATH": str(ROOT)}
    own_result(Typed(program.absolute(), environment))
