"""The cores of another release, in a process of its own: ``python former_cores.py``, with the code
of that release as PYTHONPATH.

What is said are pickles: ``("broker" | "registration", topology file, id, instance, rows, seed)``
is answered by the number of a core, ``(number, event, now)`` by its actions; an exception by its
text.
"""

from __future__ import annotations

import pickle
import sys
import traceback
from itertools import count
from random import Random
from typing import Any, BinaryIO

from onyx.broker.broker_core import BrokerCore
from overlay.topology import parse_topology
from registration.registration_core import RegistrationCore


def make(
    kind: str,
    text: str,
    identity: str,
    instance: str,
    rows: list[tuple[str, str, bytes]],
    seed: int,
) -> BrokerCore | RegistrationCore:
    topology = parse_topology(text, "simulated")
    if kind == "broker":
        return BrokerCore(topology, identity, instance, rows)
    secret = Random(seed)
    return RegistrationCore(
        topology, identity, instance, rows, new_secret=lambda: secret.randbytes(32)
    )


def serve(asked: BinaryIO, said: BinaryIO) -> None:
    cores: dict[int, BrokerCore | RegistrationCore] = {}
    numbers = count(1)
    while True:
        try:
            question: tuple[Any, ...] = pickle.load(asked)
        except EOFError:
            return
        answer: object
        try:
            if isinstance(question[0], str):
                answer = number = next(numbers)
                cores[number] = make(*question)
            else:
                number, event, now = question
                answer = cores[number].handle(event, now)
        except Exception:
            answer = traceback.format_exc()
        pickle.dump(answer, said)
        said.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
