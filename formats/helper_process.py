"""HelperProcess: a process of its own, which is asked what may cost anything."""

from __future__ import annotations

import subprocess
import sys
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Lock


class HelperProcess:
    """Runs ``python -m MODULE DESCRIPTOR``, of a socket, from the first question on, and again
    after it died; it ends with whoever started it.  ``close`` may be called by another thread."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection
        self._closed = False
        self._starting = Lock()  # a process that is being started is closed as well

    def close(self) -> None:
        """End the process; whoever waits for an answer gets one."""
        with self._starting:
            self._closed = True
            process = self._process
        if process is not None:
            process.kill()
            process.wait()

    def start(self) -> Connection:
        """The way to the process, which is there from now on; OSError once it is closed."""
        with self._starting:
            if self._closed:
                raise OSError("closed")
            if self._process is None:
                self._pipe, its = Pipe()
                command = [sys.executable, "-P", "-m", self._module, str(its.fileno())]
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, pass_fds=[its.fileno()]
                )
                its.close()
        return self._pipe

    def end(self) -> None:
        """Until the next question."""
        if self._process is not None:
            self._pipe.close()
            self._process.kill()
            self._process.wait()
        self._process = None
