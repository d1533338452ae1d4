"""Connections to PostgreSQL, and the tables of a network there.

::

    nodes    name, epoch, until, number    the lease of each node's rows (lease.py)
    rows     node, space, key, value       what store.py has in a file
    format   version

A network has a schema of its own, which its first process makes.
"""

from __future__ import annotations

from typing import TypeAlias

import psycopg
from psycopg import sql

from overlay.link.errors import StoreError, StoreUnreachable

FORMAT_VERSION = 1
CONNECT_SECONDS = 2

PostgresConnection: TypeAlias = psycopg.Connection[tuple[object, ...]]

# A plan never depends on how many rows there were when it was made.
_SETTINGS = """
SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
SET plan_cache_mode = force_generic_plan; SET client_min_messages = warning;
SET default_transaction_isolation = 'read committed';
SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') = 'off'
"""
_TABLES = """
CREATE TABLE IF NOT EXISTS format (version integer NOT NULL);
CREATE TABLE IF NOT EXISTS nodes (
    name text PRIMARY KEY, epoch bigint NOT NULL, until timestamptz NOT NULL, number bigint NOT NULL
) WITH (fillfactor = 10);
CREATE TABLE IF NOT EXISTS rows (
    node text COLLATE "C" NOT NULL, space text COLLATE "C" NOT NULL, key bytea NOT NULL,
    value bytea NOT NULL, PRIMARY KEY (node, space, key)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
"""


def connect(url: str, schema: str, seconds: float) -> PostgresConnection:
    """A connection to whichever server takes changes; lost after so many silent seconds.

    StoreUnreachable says where and why there is none.
    """
    least = str(max(1, round(seconds)))
    try:
        connection = psycopg.connect(
            url,
            autocommit=True,
            prepare_threshold=0,
            application_name=f"onyx {schema}",
            target_session_attrs="read-write",
            connect_timeout=str(CONNECT_SECONDS),
            tcp_user_timeout=str(round(seconds * 1000)),
            keepalives_idle=least,
            keepalives_interval="1",
            keepalives_count="2",
        )
    except psycopg.Error as error:
        raise StoreUnreachable(f"{shown(url)} cannot be reached: {_reason(error)}") from None
    try:
        connection.execute(_SETTINGS, prepare=False)
        connection.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(schema)))
    except psycopg.Error as error:
        connection.close()
        raise StoreUnreachable(f"{shown(url)} cannot be used: {_reason(error)}") from None
    return connection


def prepare(connection: PostgresConnection, schema: str, where: str) -> None:
    """Make the tables if they are not there; StoreError when they are of another version."""
    try:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (schema,))
            found = connection.execute("SELECT to_regnamespace(%s)", (f'"{schema}"',)).fetchone()
            if found == (None,):
                name = sql.Identifier(schema)
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
            connection.execute(_TABLES, prepare=False)
            connection.execute(
                "INSERT INTO format SELECT %s WHERE NOT EXISTS (SELECT FROM format)",
                (FORMAT_VERSION,),
            )
            versions = connection.execute("SELECT version FROM format").fetchall()
    except psycopg.Error as error:
        raise StoreError(f"{where} cannot be used: {_reason(error)}") from None
    if versions != [(FORMAT_VERSION,)]:
        found_version = ", ".join(str(version) for (version,) in versions)
        raise StoreError(
            f"{where} has store format {found_version}; this program reads format {FORMAT_VERSION}"
        )


def shown(url: str) -> str:
    """Without the query, in which there may be secrets."""
    return url.partition("?")[0]


def _reason(error: psycopg.Error) -> str:
    return " ".join(str(error).split())
