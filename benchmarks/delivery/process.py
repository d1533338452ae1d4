"""``python -m benchmarks.delivery.process``: measures one part; see DeliverJob."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping

from benchmarks.benchmark import BenchmarkError, WrongAnswers
from benchmarks.delivery.cliff import measure_cliff
from benchmarks.delivery.flwor import measure_flwor
from benchmarks.delivery.forms import measure_forms
from benchmarks.delivery.grouping import measure_grouping
from benchmarks.delivery.job import DeliverJob, Teller
from benchmarks.delivery.links import measure_links
from benchmarks.delivery.paths import measure_paths
from benchmarks.delivery.places import measure_places
from benchmarks.delivery.returns import measure_returns
from benchmarks.delivery.rules import measure_rules
from formats.kernel import build_info
from yfilter import ProfileRefused

PARTS: Mapping[str, Callable[[DeliverJob, Teller], None]] = {
    "paths": measure_paths,
    "flwor": measure_flwor,
    "returns": measure_returns,
    "cliff": measure_cliff,
    "forms": measure_forms,
    "rules": measure_rules,
    "grouping": measure_grouping,
    "links": measure_links,
    "places": measure_places,
}


def main() -> None:
    """Reads the job and tells what it has found."""
    job = DeliverJob(**json.loads(sys.stdin.read()))
    teller = Teller(job, sys.stdout)
    teller.build(build_info())
    try:
        PARTS[job.part](job, teller)
    except WrongAnswers as error:
        teller.wrong(str(error))
    except (BenchmarkError, ProfileRefused) as error:
        sys.exit(" ".join(str(error).split()))


if __name__ == "__main__":
    main()
