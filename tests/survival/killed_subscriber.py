"""A subscriber to be killed: ``python -m tests.survival.killed_subscriber REGISTRATION PROFILE
DATABASE`` writes each message into a database, with its position in the same transaction, and says
a line for each hundred of this run.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing

import trio

from onyx import User
from tests.survival.ledger import index_in

SAY_EACH = 100
SCHEMA = """
CREATE TABLE IF NOT EXISTS work (source TEXT, message INTEGER);
CREATE TABLE IF NOT EXISTS positions (profile TEXT PRIMARY KEY, position INTEGER);
"""


def opened(database: str) -> sqlite3.Connection:
    connection = sqlite3.connect(database)
    # which bears the death of a process, if not that of a machine
    connection.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; {SCHEMA}")
    return connection


async def take(registration: str, profile: str, database: str) -> None:
    with closing(opened(database)) as work:

        def position_of(profile: str) -> int:
            asked = "SELECT position FROM positions WHERE profile = ?"
            row = work.execute(asked, (profile,)).fetchone()
            return int(row[0]) if row else 0

        done = 0
        async with User(registration) as user:
            async for delivery in user.results(profile, positions=position_of):
                with work:
                    place = delivery.source, index_in(delivery.results[0])
                    work.execute("INSERT INTO work VALUES (?, ?)", place)
                    kept = delivery.profile, delivery.position
                    work.execute("REPLACE INTO positions VALUES (?, ?)", kept)
                done += 1
                if done % SAY_EACH == 0:
                    print(done, flush=True)


if __name__ == "__main__":
    _, where, wanted, file = sys.argv
    trio.run(take, where, wanted, file)
