"""The process in which profiles are evaluated that take long; late_questions.py starts it.

It gives way to others who want the processor.  A question that is not answered long after its limit
ends it, and so does one that takes too much memory.

Run as ``python -m yfilter.late_process DESCRIPTOR``, of a socket; ends when that does.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
import time
from multiprocessing.connection import Connection

from yfilter.late_evaluation import evaluate_profile
from yfilter.late_questions import EvaluateProfile, pack_answer

MEMORY_BYTES = 1024 * 1024 * 1024
NICENESS = 10
GRACE_SECONDS = 1.0  # to read profile and message


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(NICENESS)
    gc.freeze()
    pipe = Connection(int(sys.argv[1]))
    while True:
        try:
            question: EvaluateProfile = pipe.recv()
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_PROF, GRACE_SECONDS + 2 * question.seconds)
        answer = pack_answer(evaluate_profile(question, time.thread_time))
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send_bytes(answer)


if __name__ == "__main__":
    main()
