"""YFilter: one message against all profiles and routes of a broker, sharing what they share.

::

    matcher = Matcher()
    matcher.add('/nitf[head/pubdata/@edition.area = "SF"]', "alice")
    for match in matcher.match(message):
        ...
"""

import formats  # noqa: F401 - first: it decides which build of every module runs
from yfilter.engine.linear_paths import Conjunction, LinearPath, LinearStep, routing_query
from yfilter.engine.match_limits import MatchLimits
from yfilter.errors import MatchLimitExceeded, ProfileRefused
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_profile
from yfilter.matcher import LinkTarget, Matcher
from yfilter.matches import ProfileMatch, RouteMatch, TransformationMatch

__all__ = [
    "Conjunction",
    "LinearPath",
    "LinearStep",
    "LinkTarget",
    "MatchLimitExceeded",
    "MatchLimits",
    "Matcher",
    "Profile",
    "ProfileMatch",
    "ProfileRefused",
    "RouteMatch",
    "TransformationMatch",
    "parse_profile",
    "routing_query",
]
