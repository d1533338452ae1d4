"""RDF graphs as messages: a graph is a message, striped by subject (``striped.py``)."""
