"""The process in which ``results`` measures Saxon, whose library changes the locale of its process.

A script without imports of ours: one request in JSON on standard input, ``{"messages": [xml, ...],
"queries": [text, ...], "rounds": number, "cpu": bool}``, one answer, ``[[microseconds, result],
...]`` of the queries.  A query is about ``$messages``, all of them, and the best of its rounds
counts: compiling it is part of that, parsing the messages is not.
"""

import json
import sys
from time import perf_counter_ns, thread_time_ns

import saxonche


def measure() -> None:
    request = json.load(sys.stdin)
    clock = thread_time_ns if request["cpu"] else perf_counter_ns
    with saxonche.PySaxonProcessor(license=False) as saxon:
        xquery = saxon.new_xquery_processor()
        messages = saxonche.PyXdmValue(saxon)
        for text in request["messages"]:
            messages.add_xdm_item(saxon.parse_xml(xml_text=text))
        xquery.set_parameter("messages", messages)
        answer = []
        for query in request["queries"]:
            times = []
            for _ in range(request["rounds"]):
                start = clock()
                xquery.set_query_content(query)
                result = xquery.run_query_to_string()
                times.append((clock() - start) / 1000)
            answer.append([min(times), result])
    json.dump(answer, sys.stdout)


measure()
