"""The process that ``TimedSaxon`` talks to: requests and answers as lines of JSON.

A script without imports of ours, as demo/saxon_process.py.  What is timed are stylesheets, which
are compiled once; its library compiles a query again each time that it is run.  The one argument is
the clock, "wall" or "cpu".

=====================================  ==========================================================
request                                answer
=====================================  ==========================================================
``{"stylesheet": text}``               ``{}``
``{"stylesheet_file": path}``          ``{}``
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
        transformer: Any = None
        for line in sys.stdin:
            request = json.loads(line)
            answer: dict[str, object] = {}
            try:
                if "transform" in request:
                    answer = _transformed(saxon, transformer, request)
                else:
                    named = {
                        "stylesheet" + end: request["stylesheet" + key]
                        for key, end in (("", "_text"), ("_file", "_file"))
                        if "stylesheet" + key in request
                    }
                    transformer = saxon.new_xslt30_processor().compile_stylesheet(**named)
            except saxonche.PySaxonApiError as error:
                answer = {"error": str(error)}
            print(json.dumps(answer), flush=True)


def _transformed(
    saxon: saxonche.PySaxonProcessor, transformer: Any, request: dict[str, Any]
) -> dict[str, object]:
    parsing, transforming = [], []
    for _ in range(request["rounds"]):
        start = _clock()
        message = saxon.parse_xml(xml_text=request["transform"])
        parsed = _clock()
        text = transformer.transform_to_string(xdm_node=message)
        end = _clock()
        parsing.append((parsed - start) / 1000)
        transforming.append((end - parsed) / 1000)
    middle = len(parsing) // 2
    return {"parse_us": sorted(parsing)[middle], "us": sorted(transforming)[middle], "text": text}


serve()
