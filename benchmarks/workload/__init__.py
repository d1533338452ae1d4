"""A made-up world of messages and profiles, the same for the same seed.

::

    schema = make_schema(seed)                      what a DTD would say, and value domains
    make_message(schema, random, size)              one message of about so many bytes
    ProfileMaker(schema, seed).distinct()           profiles, no two the same

Nothing in it was taken from anyone's data; its proportions are those of news and trading messages.
"""

from benchmarks.workload.messages import make_message, make_messages
from benchmarks.workload.profiles import ProfileMaker
from benchmarks.workload.schema import DocumentSchema, make_schema

__all__ = ["DocumentSchema", "ProfileMaker", "make_message", "make_messages", "make_schema"]
