"""``python -m onyx.identity.signing_process DIRECTORY``: signs one certificate; not for people.

The registration service starts it where the authority's key is, so that no process that others
connect to has read the key.  A RenewalWanted comes on standard input, and a Renewed goes out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import trio

from onyx.errors import NotAuthenticated
from overlay.link.validity import Certificate
from registration.renewal_questions import RenewalWanted, Renewed

SIGN_SECONDS = 60.0


async def sign(directory: Path, wanted: RenewalWanted) -> Renewed:
    """By the authority in a directory, in a process of its own."""
    command = [sys.executable, "-P", "-m", __name__, str(directory)]
    asked = json.dumps([*wanted.shown, wanted.request.hex()]).encode()
    with trio.move_on_after(SIGN_SECONDS):
        try:
            done = await trio.run_process(command, stdin=asked, capture_stdout=True, check=False)
            return msgspec.msgpack.decode(done.stdout, type=Renewed)
        except (OSError, msgspec.MsgspecError) as error:
            return Renewed(failed=f"the signing process failed: {error}")
    return Renewed(failed=f"signing took more than {SIGN_SECONDS:.0f} s")


def main(argv: Sequence[str]) -> None:
    # It takes long to load, and the registration service loads this module.
    from onyx.identity.authority import Authority  # noqa: PLC0415

    *shown, request = json.load(sys.stdin)  # msgpack has no numbers as large as serial numbers
    try:
        signed = Authority(Path(argv[0])).renew(Certificate(*shown), bytes.fromhex(request))
        answer = Renewed(signed.decode("ascii"))
    except NotAuthenticated as error:
        answer = Renewed(failed=error.reason)
    except OSError as error:
        answer = Renewed(failed=str(error))
    sys.stdout.buffer.write(msgspec.msgpack.encode(answer))


if __name__ == "__main__":
    main(sys.argv[1:])
