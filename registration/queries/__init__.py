"""ObjectGlobe (seed 001): queries over data that many providers have, without I/O.

::

    providers.py      records of the market: relations, functions, machines, links, rules (2.2)
    refusals.py       the one error of queries, with its place
    sql_language.py   the part of Spark's SQL that a query may use, as an allow list
    sql_functions.py  the functions that it may call, with the types of their results
    sql_types.py      types of its expressions
    sql_names.py      which column of which relation each name in it means
    sql_reader.py     SQL text -> checked query graph
    stopped.py        the one error of a query that runs
    query_graph.py    relations, predicates, functions and blocks of a query
    compatibility.py  which relation and function may stand at which machine, as bits (2.2)
    cost_model.py     seconds, money, bytes and memory of an operator at a machine
    selectivity.py    the share of rows that a predicate keeps
    access_plans.py   where a relation can be had, by which scan or wrapper
    early_aggregates.py  relations grouped before joins, where rules let out aggregates alone
    block_plans.py    a block of a query -> a problem of numbers, and its plans -> operators
    join_plans.py     dynamic programming bottom up, the site as interesting property
    idp.py            iterative dynamic programming for queries that are too large
    optimiser.py      query graph and market -> query plan, for limits of quality
    quality.py        limits that a user gives with a query (2.3)
    query_plan.py     annotated operators, fragments by cycle provider, digest
    fragment_sql.py   the SQL that each cycle provider's Spark is given
    passed_rows.py    the fragments that compute nothing
    fragment_check.py a cycle provider's own look at a fragment: its records, rules, and SQL
"""
