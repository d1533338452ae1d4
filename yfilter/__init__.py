"""YFilter: one message against all profiles and routes of a broker, sharing what they share.

::

    matcher = Matcher()
    matcher.add('/nitf[head/pubdata/@edition.area = "SF"]', "alice")
    for match in matcher.match(message):
        ...
"""

from typing import TYPE_CHECKING

import formats  # noqa: F401 - first: it decides which build of every module runs
from formats.lazy_names import lazy_names

if TYPE_CHECKING:
    from yfilter.engine.linear_paths import Conjunction, routing_query
    from yfilter.errors import MatchLimitExceeded, ProfileRefused
    from yfilter.language.profile_limits import MatchLimits
    from yfilter.language.query_ast import Profile
    from yfilter.language.query_parser import parse_profile
    from yfilter.matcher import LinkTarget, Matcher
    from yfilter.matches import ProfileMatch, RouteMatch, TransformationMatch
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "yfilter.engine.linear_paths": "Conjunction routing_query",
            "yfilter.language.profile_limits": "MatchLimits",
            "yfilter.errors": "MatchLimitExceeded ProfileRefused",
            "yfilter.language.query_ast": "Profile",
            "yfilter.language.query_parser": "parse_profile",
            "yfilter.matcher": "LinkTarget Matcher",
            "yfilter.matches": "ProfileMatch RouteMatch TransformationMatch",
        },
    )

__all__ = [
    "Conjunction",
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
