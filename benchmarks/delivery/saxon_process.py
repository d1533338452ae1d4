"""The process that ``TimedSaxon`` talks to: requests and answers as lines of JSON.

A script without imports of ours, as demo/saxon_process.py.  What is timed are stylesheets, which
are compiled once; its library compiles a query again each time that it is run.  The one argument is
the clock, "wall" or "cpu".

=====================================  ==========================================================
request                                answer
=====================================  ==========================================================
``{"stylesheets": [text, …]}``         ``{}``; all of them transform each message from now on
``{"stylesheet_file": path}``          ``{}``; this one does
``{"transform": xml, "rounds": n}``    ``{"parse_us": …, "us": …, "text": …}``, medians of n
=====================================  ==========================================================

An error is answered with ``{"error": text}``.
"""

import json
import sys
from time import perf_counter_ns, thread_time_ns
from typing import Any

import saxonche

_clock = thread_time_ns if sys.argv[1] == "cpu" else perf_counter_ns


def serve() -> None:
    with saxonche.PySaxonProcessor(license=False) as saxon:
        transformers: list[Any] = []
        for line in sys.stdin:
            request = json.loads(line)
            answer: dict[str, object] = {}
            try:
                if "transform" in request:
                    answer = _transformed(saxon, transformers, request)
                else:
                    compiled = saxon.new_xslt30_processor().compile_stylesheet
                    if "stylesheet_file" in request:
                        transformers = [compiled(stylesheet_file=request["stylesheet_file"])]
                    else:
                        transformers = [compiled(stylesheet_text=t) for t in request["stylesheets"]]
            except saxonche.PySaxonApiError as error:
                answer = {"error": str(error)}
            print(json.dumps(answer), flush=True)


def _transformed(
    saxon: saxonche.PySaxonProcessor, transformers: list[Any], request: dict[str, Any]
) -> dict[str, object]:
    parsing, transforming = [], []
    for _ in range(request["rounds"]):
        start = _clock()
        message = saxon.parse_xml(xml_text=request["transform"])
        parsed = _clock()
        texts = [one.transform_to_string(xdm_node=message) for one in transformers]
        end = _clock()
        parsing.append((parsed - start) / 1000)
        transforming.append((end - parsed) / 1000)
    middle = len(parsing) // 2
    return {
        "parse_us": sorted(parsing)[middle],
        "us": sorted(transforming)[middle],
        "text": "".join(texts),
    }


serve()
