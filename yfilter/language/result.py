"""Return template + bindings -> the results of one profile for one message.

The engine has matched the profile's matching path and hands over the elements that it bound to
the first variable.  What is left is done here: the other clauses, the whole ``where``, and the
``return``.

=======================  ======================================================================
the profile is           results
=======================  ======================================================================
a path                   the message, once, when the path selects anything
a constructor            one document, when one of its decisive parts yields anything
                         (``matching_path.decisive_parts``)
anything else            one document for each item of its value, in order
=======================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Sequence

from formats.element_stream import ElementStream
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits
from yfilter.language.query_ast import Profile
from yfilter.language.result_planner import result_plan
from yfilter.language.results import result_writer


def render(
    profile: Profile,
    stream: ElementStream,
    bindings: Sequence[int],
    limits: EvaluationLimits = DEFAULT_EVALUATION_LIMITS,
) -> list[bytes]:
    """The results of ``profile`` for the message, each a well-formed document in UTF-8.

    ``bindings`` are the elements of the profile's matching path (``matching_path.py``), in any
    order.  Empty means that the profile does not match after all.  Raises MatchLimitExceeded.
    """
    return result_writer(stream, limits).results(result_plan(profile), sorted(set(bindings)))
