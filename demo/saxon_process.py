"""The process that ``Saxon`` talks to: requests and answers as lines of JSON.

A script without imports of ours.  Saxon stays in a process of its own since its library changes
the locale of the process it is in.

========================================  ==================================================
request                                   answer
========================================  ==================================================
``{"messages": [xml, …]}``                 null; these are what queries are about from now on
``{"query": text}``                        what the query makes of them, as a string
``{"query": text, "only": index}``         the same with one message
========================================  ==================================================

An error is answered with ``{"error": text}``.
"""

import json
import sys

import saxonche


def serve() -> None:
    with saxonche.PySaxonProcessor(license=False) as saxon:
        xquery = saxon.new_xquery_processor()
        every: list[object] = []
        for line in sys.stdin:
            request = json.loads(line)
            answer: object = None
            try:
                if "messages" in request:
                    every = [saxon.parse_xml(xml_text=text) for text in request["messages"]]
                else:
                    messages = saxonche.PyXdmValue(saxon)
                    for index, message in enumerate(every):
                        if index == request.get("only", index):
                            messages.add_xdm_item(message)
                    xquery.set_parameter("onyx-messages", messages)
                    xquery.set_query_content(request["query"])
                    answer = xquery.run_query_to_string()
            except saxonche.PySaxonApiError as error:
                answer = {"error": str(error)}
            print(json.dumps(answer), flush=True)


serve()
