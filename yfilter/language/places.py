"""Places on the earth: points, circles, lines and areas, as the functions ``place:…`` take them.

::

    52.5,13.4    52.5 13.4 34            a point: latitude, longitude, perhaps a height
    circle 52.5,13.4 30                  within 30 km of a point
    box 52.3,13.1 52.7,13.8              from a south-western corner to a north-eastern one
    polygon 52,13 52,14 53,13            the area in a ring, which need not be closed
    line 52,13 52.1,13.2                 a row of edges

The earth is a sphere of EARTH_KM.  An edge is straight in latitude and longitude and takes the
shorter way round the earth.  A ring that goes round the earth has the pole in it that is nearer to
its points.  Whatever touches an edge of an area is in it, to 1e-9 degrees (SLACK_KM where circles
are concerned).  Distances from edges are those from arcs of great circles of at most PIECE degrees,
which are within ten metres of the edges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import pairwise
from math import asin, ceil, cos, degrees, dist, floor, hypot, pi, radians, sin, sqrt
from operator import le, lt
from typing import NamedTuple, TypeAlias

EARTH_KM = 6371.0088  # the mean radius of WGS 84
SLACK_KM = 1e-6
BULGE_KM = 0.02  # of pieces beyond the box of an edge, at most
PIECE = 0.25
POINTS_MAX = 4_096
LENGTH_MAX = 3_600  # degrees, of all edges of a place together
PAIRS_A_VISIT = 8  # of points that are compared
KEPT_MAX = 4_096  # characters of a text whose place is kept

Point: TypeAlias = tuple[float, float]  # latitude and longitude in degrees
Edge: TypeAlias = tuple[Point, Point]
_Vector: TypeAlias = tuple[float, float, float]

EXCHANGED = {
    "place:inside": "place:covers",
    "place:covers": "place:inside",
    "place:intersects": "place:intersects",
}
"""The conditions on two places, each with the one that says the same with the places exchanged."""

_SLACK = 1e-9  # degrees
_POLE = 90.0
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
_COMMA = re.compile(r"[ \t\n\r]*,[ \t\n\r]*")
_SAID = re.compile(r"[ \t\n\r]*(point|circle|box|polygon|line)[ \t\n\r]+")
# The names of elements and attributes of CAP, GeoRSS and GML that say how their text is meant.
_NAMED = {
    **{name: name for name in ("point", "circle", "box", "polygon", "line")},
    "pos": "point",
    **dict.fromkeys(("posList", "coordinates"), "list"),
}
_LATITUDE_FIRST = re.compile(r".*[:/#](?:4326|4979)|")
_LONGITUDE_FIRST = re.compile(r".*[:/#]CRS84h?|CRS84")


class Place:
    """``points``, whose longitudes go on beyond 180 degrees so that each edge is as long as it
    looks; of an area the last is the first.  ``edges``: those that bound it, none of a point or a
    circle, which has a ``radius`` in km.  An area all around the earth has its points twice, so
    that any other place fits into it somewhere.  ``text`` is read as the same place."""

    def __init__(
        self,
        text: str,
        points: tuple[Point, ...],
        edges: tuple[Edge, ...] = (),
        radius: float = 0.0,
        *,
        is_area: bool = False,
    ) -> None:
        self.text, self.points, self.edges, self.radius = text, points, edges, radius
        self.is_area = is_area
        latitudes, longitudes = zip(*points, strict=True)
        self.south, self.north = min(latitudes), max(latitudes)
        self.west, self.east = min(longitudes), max(longitudes)

    @cached_property
    def poles(self) -> tuple[float, ...]:
        """The latitudes of the poles that it has."""
        return tuple(pole for pole in (-_POLE, _POLE) if pole in (self.south, self.north))

    @cached_property
    def centre(self) -> _Vector:
        return _vector(*self.points[0])

    @cached_property
    def pieces(self) -> tuple[tuple[_Vector, _Vector], ...]:
        """The edges as short arcs."""
        found: list[tuple[_Vector, _Vector]] = []
        for (south, west), (north, east) in self.edges:
            count = max(1, ceil(max(abs(north - south), abs(east - west)) / PIECE))
            ends = [
                _vector(south + (north - south) * at / count, west + (east - west) * at / count)
                for at in range(count + 1)
            ]
            found += pairwise(ends)
        return tuple(found)

    @cached_property
    def length(self) -> float:
        """Degrees of its edges together."""
        return sum(max(abs(one[0] - other[0]), abs(one[1] - other[1])) for one, other in self.edges)

    def has(self, latitude: float, longitude: float) -> bool:
        """Whether a point is in it, of a circle whether it is the centre."""
        if abs(latitude) == _POLE:
            return latitude in self.poles
        first, last = self.west - _SLACK, self.east + _SLACK
        turns = range(ceil((first - longitude) / 360), floor((last - longitude) / 360) + 1)
        return any(self._encloses(latitude, longitude + 360 * turn) for turn in turns)

    def _encloses(self, latitude: float, longitude: float) -> bool:
        is_near = (
            self.south - _SLACK <= latitude <= self.north + _SLACK
            and self.west - _SLACK <= longitude <= self.east + _SLACK
        )
        if not is_near or not self.edges:
            return is_near
        winding = 0
        for (south, west), (north, east) in pairwise(self.points):
            low, high = (south, north) if south < north else (north, south)
            if latitude < low - _SLACK or latitude > high + _SLACK:
                continue
            side = (east - west) * (latitude - south) - (longitude - west) * (north - south)
            if (
                abs(side) <= _SLACK * hypot(east - west, north - south)
                and min(west, east) - _SLACK <= longitude <= max(west, east) + _SLACK
            ):
                return True
            if south <= latitude < north:
                winding += side > 0
            elif north <= latitude < south:
                winding -= side < 0
        return self.is_area and winding != 0

    def box(self, beyond: float = 0.0) -> Box:
        """The box around all that is at most so many km away from it."""
        angle = (self.radius + beyond + BULGE_KM) / EARTH_KM
        south, north = self.south - degrees(angle), self.north + degrees(angle)
        if south <= -_POLE or north >= _POLE:
            return Box(max(south, -_POLE), min(north, _POLE), -180.0, 360.0)
        # The circle around a point touches the meridians that are so far away.
        highest = cos(radians(max(abs(self.south), abs(self.north))))
        spread = degrees(asin(min(1.0, sin(angle) / highest)))
        width = self.east - self.west + 2 * spread
        if width >= 360:
            return Box(south, north, -180.0, 360.0)
        return Box(south, north, (self.west - spread + 180) % 360 - 180, width)


class Box(NamedTuple):
    """From ``south`` to ``north``, and from ``west``, of -180 to 180, as far as its ``width``."""

    south: float
    north: float
    west: float
    width: float

    def meets(self, other: Box) -> bool:
        return (
            self.south <= other.north
            and other.south <= self.north
            and (
                (other.west - self.west) % 360 <= self.width
                or (self.west - other.west) % 360 <= other.width
            )
        )


class PlaceTest(NamedTuple):
    """A condition on a place and one that is known; ``limit``: of ``place:distance``, in km."""

    name: str
    known: Place
    is_open: bool = False
    limit: float = 0.0

    @property
    def box(self) -> Box:
        """All places for which it holds meet this box."""
        return self.known.box(min(max(self.limit, 0.0), pi * EARTH_KM))

    def holds(self, place: Place) -> bool:
        if self.name == "place:distance":
            return (lt if self.is_open else le)(distance(place, self.known), self.limit)
        return relates(self.name, place, self.known)


def written_test(name: str, text: str, relation: str = "", limit: object = 0.0) -> str | None:
    """A test as a text, which ``read_test`` reads; None where the place is none."""
    if read_place(text) is None:
        return None
    return f"{name} {text}" if not relation else f"{name} {relation} {limit} {text}"


def read_test(said: str) -> PlaceTest:
    name, text = said.split(" ", 1)
    is_open, limit = False, 0.0
    if name == "place:distance":
        relation, number, text = text.split(" ", 2)
        is_open, limit = relation == "<", float(number)
    known = read_place(text)
    assert known is not None  # ``written_test`` has read it
    return PlaceTest(name, known, is_open, limit)


# -------------------------------------------------------------------------------------------------
# Places as texts.


def read_place(text: str, name: str = "", system: str = "", dimension: str = "") -> Place | None:
    """The place that a text says; None for any other text.

    Of a text in a message ``name`` is the local name of the node that has it; ``system`` and
    ``dimension`` are GML's ``srsName`` and ``srsDimension``."""
    read = _kept if len(text) <= KEPT_MAX else _read
    return read(text, _NAMED.get(name, ""), system, dimension)


def _read(text: str, form: str, system: str, dimension: str) -> Place | None:
    is_named = bool(form)
    if not is_named and (said := _SAID.match(text)):
        form, text = said[1], text[said.end() :]
    if len(text) > 80 * POINTS_MAX:
        return None
    groups = [group.split(",") for group in _COMMA.sub(",", text.strip(" \t\n\r")).split()]
    if not groups or not all(_NUMBER.fullmatch(one) for group in groups for one in group):
        return None
    rows = [[float(number) for number in group] for group in groups]
    radius = None
    if len(rows[0]) == 1:
        numbers = [number for (number, *_) in rows]
        if form == "circle" and is_named and len(rows) == 3:
            radius = numbers.pop() / 1000  # GeoRSS has metres
        size = 3 if dimension == "3" or (form in ("", "point") and len(numbers) == 3) else 2
        if len(numbers) % size or max(map(len, rows)) > 1:
            return None
        rows = [numbers[at : at + size] for at in range(0, len(numbers), size)]
    elif form in ("", "circle") and len(rows) == 2 and len(rows[1]) == 1:
        radius = rows.pop()[0]  # CAP has km
    if not {len(row) for row in rows} <= {2, 3} or len(rows) > POINTS_MAX:
        return None
    if _LONGITUDE_FIRST.fullmatch(system):
        points = [(row[1], row[0]) for row in rows]
    elif _LATITUDE_FIRST.fullmatch(system):
        points = [(row[0], row[1]) for row in rows]
    else:
        return None
    if not all(abs(latitude) <= _POLE and abs(east) <= 360 for latitude, east in points):
        return None
    return _made(form, points, radius)


_kept = lru_cache(1_024)(_read)


def _made(form: str, points: list[Point], radius: float | None) -> Place | None:
    if form == "box":
        return _box(*points) if len(points) == 2 else None
    points = [(latitude, _turned(east)) for latitude, east in points]
    if radius is not None or form == "circle":
        if radius is None or len(points) > 1 or not 0 <= radius <= pi * EARTH_KM:
            return None
        return Place(f"circle {_listed(points)} {radius!r}", tuple(points), radius=radius)
    if form == "point" or (form in ("", "list") and len(points) == 1):
        return Place(_listed(points), tuple(points)) if len(points) == 1 else None
    is_closed = len(points) > 3 and points[0] == points[-1]
    if form == "polygon" or (form in ("", "list") and is_closed):
        return _area(points) if len(set(points)) > 2 else None
    if form == "" or len(points) < 2:
        return None
    row = _unrolled(points)
    return _bounded(Place(f"line {_listed(points)}", row, tuple(pairwise(row))))


def _turned(longitude: float) -> float:
    return longitude if -180 <= longitude < 180 else (longitude + 180) % 360 - 180


def _listed(points: list[Point]) -> str:
    return " ".join(f"{latitude!r},{longitude!r}" for latitude, longitude in points)


def _bounded(place: Place) -> Place | None:
    return place if place.length <= LENGTH_MAX else None


def _unrolled(points: list[Point]) -> tuple[Point, ...]:
    """Each longitude within 180 degrees of the one before."""
    found, turns = points[:1], 0
    for (_, before), (latitude, longitude) in pairwise(points):
        turns += (longitude - before < -180) - (longitude - before > 180)
        found.append((latitude, longitude + 360 * turns))
    return tuple(found)


def _box(low: Point, high: Point) -> Place | None:
    (south, west), (north, east) = low, high
    if south > north:
        return None
    text = f"box {_listed([low, high])}"
    is_around = east - west >= 360
    if is_around and north - south == 2 * _POLE:
        return Place(text, ((0.0, 0.0),), radius=pi * EARTH_KM)
    west, east = _turned(west), _turned(east)
    east = west + 720 if is_around else east + 360 * (east < west)
    corners = (south, west), (south, east), (north, east), (north, west), (south, west)
    edges = tuple(pairwise(corners))
    if is_around:
        bounds = [each for each in (south, north) if abs(each) != _POLE or south == north]
        edges = tuple(((each, west), (each, west + 360)) for each in bounds)
    return Place(text, corners, edges, is_area=True)


def _area(points: list[Point]) -> Place | None:
    text = f"polygon {_listed(points)}"
    if points[0] != points[-1]:
        points = [*points, points[0]]
    ring = _unrolled(points)
    edges = tuple(pairwise(ring))
    around = round(ring[-1][1] - ring[0][1])
    if around:
        if abs(around) > 360:
            return None
        again = tuple((latitude, longitude + around) for latitude, longitude in ring[1:])
        pole = _POLE if sum(latitude for latitude, _ in points[1:]) >= 0 else -_POLE
        ends = (pole, again[-1][1]), (pole, ring[0][1])
        ring = *ring, *again, *ends, ring[0]
    place = Place(text, ring, edges, is_area=True)
    return None if not around and place.east - place.west > 360 else _bounded(place)


# -------------------------------------------------------------------------------------------------
# Relations of two places.


def relates(name: str, one: Place, other: Place) -> bool:
    """Whether a condition of EXCHANGED holds."""
    if name == "place:intersects":
        return _meet(one, other) if one.edges and other.edges else distance(one, other) <= SLACK_KM
    return _is_inside(one, other) if name == "place:inside" else _is_inside(other, one)


def work(name: str, one: Place, other: Place) -> int:
    """How many pairs of points, or pieces of edges, a relation looks at, about."""
    pairs = len(one.points) * len(other.points)
    if name == "place:distance" or one.radius or other.radius:
        pairs += int((1 + one.length / PIECE) * (1 + other.length / PIECE))
    return pairs


def distance(one: Place, other: Place) -> float:
    """The km between their nearest points; 0 where they have one in common."""
    if not one.edges:
        one, other = other, one
    if not one.edges:
        between = _angle(one.centre, other.centre) * EARTH_KM
        return max(0.0, between - one.radius - other.radius)
    if not other.edges:
        if one.has(*other.points[0]):
            return 0.0
        return max(0.0, _from_edges(one, other.centre) - other.radius)
    if _meet(one, other):
        return 0.0
    sides = ((one, other), (other, one))
    return min(_from_edges(side, end) for side, far in sides for end, _ in _ends(far))


def _ends(place: Place) -> Iterator[tuple[_Vector, _Vector]]:
    yield from place.pieces
    if place.pieces:
        first, last = place.pieces[-1]
        yield last, first


def _is_inside(one: Place, area: Place) -> bool:
    if area.radius >= pi * EARTH_KM:
        return True
    if not area.edges:
        if not one.edges:
            between = _angle(one.centre, area.centre) * EARTH_KM
            return between + one.radius <= area.radius + SLACK_KM
        ends = (_angle(area.centre, end) * EARTH_KM for end, _ in _ends(one))
        if not all(end <= area.radius + SLACK_KM for end in ends):
            return False
        latitude, longitude = area.points[0]
        return not (one.is_area and one.has(-latitude, longitude + 180))
    if not one.edges:
        if not area.has(*one.points[0]) or not one.radius:
            return not one.radius and area.has(*one.points[0])
        return area.is_area and _from_edges(area, one.centre) >= one.radius - SLACK_KM
    if one.is_area and not area.is_area:
        return False
    if not set(one.poles) <= set(area.poles):
        return False
    return any(
        all(_edge_is_in(edge, turn, area) for edge in one.edges) for turn in _turns(one, area)
    )


def _turns(one: Place, other: Place) -> Iterator[int]:
    """The degrees by which ``one`` may be turned to meet the longitudes of the other."""
    first = ceil((other.west - one.east - _SLACK) / 360)
    last = floor((other.east - one.west + _SLACK) / 360)
    return (360 * turn for turn in range(first, last + 1))


def _edge_is_in(edge: Edge, turn: int, area: Place) -> bool:
    (south, west), (north, east) = edge
    start, end = (south, west + turn), (north, east + turn)
    cuts = {0.0, 1.0}
    for each in pairwise(area.points):
        at = _crossing((start, end), each)
        if at is not None:
            cuts.add(at)
    places = sorted(cuts)
    looked_at = [*places, *((one + other) / 2 for one, other in pairwise(places))]
    return all(
        area._encloses(start[0] + (end[0] - start[0]) * at, start[1] + (end[1] - start[1]) * at)
        for at in looked_at
    )


def _crossing(one: Edge, other: Edge) -> float | None:
    """Where on the first edge, from 0 to 1, the other one crosses it; None for parallel edges."""
    (south, west), (north, east) = one
    (other_south, other_west), (other_north, other_east) = other
    y, x = north - south, east - west
    other_y, other_x = other_north - other_south, other_east - other_west
    both = x * other_y - y * other_x
    if both == 0:
        return None
    at = ((other_west - west) * other_y - (other_south - south) * other_x) / both
    other_at = ((other_west - west) * y - (other_south - south) * x) / both
    slack, other_slack = _SLACK / (hypot(x, y) or 1), _SLACK / (hypot(other_x, other_y) or 1)
    is_met = -slack <= at <= 1 + slack and -other_slack <= other_at <= 1 + other_slack
    return min(1.0, max(0.0, at)) if is_met else None


def _meet(one: Place, other: Place) -> bool:
    """Whether two places with edges have a point in common."""
    if set(one.poles) & set(other.poles):
        return True
    if one.south > other.north + _SLACK or other.south > one.north + _SLACK:
        return False
    return any(_meet_turned(one, other, turn) for turn in _turns(one, other))


def _meet_turned(one: Place, other: Place, turn: int) -> bool:
    if any(other._encloses(latitude, east + turn) for latitude, east in one.points):
        return True
    if any(one._encloses(latitude, east - turn) for latitude, east in other.points):
        return True
    near = list(_near_edges(other, one, -turn))
    return any(
        _crossing(((south, west + turn), (north, east + turn)), edge) is not None
        for (south, west), (north, east) in _near_edges(one, other, turn)
        for edge in near
    )


def _near_edges(place: Place, other: Place, turn: int) -> Iterator[Edge]:
    """The edges of a place, those between its points included, that may meet another one."""
    for (south, west), (north, east) in pairwise(place.points):
        if (
            min(south, north) <= other.north + _SLACK
            and max(south, north) >= other.south - _SLACK
            and min(west, east) + turn <= other.east + _SLACK
            and max(west, east) + turn >= other.west - _SLACK
        ):
            yield (south, west), (north, east)


# -- vectors of length 1


def _vector(latitude: float, longitude: float) -> _Vector:
    latitude, longitude = radians(latitude), radians(longitude)
    around = cos(latitude)
    return around * cos(longitude), around * sin(longitude), sin(latitude)


def _angle(one: _Vector, other: _Vector) -> float:
    return 2 * asin(min(1.0, dist(one, other) / 2))


def _cross(one: _Vector, other: _Vector) -> _Vector:
    (x, y, z), (u, v, w) = one, other
    return y * w - z * v, z * u - x * w, x * v - y * u


def _dot(one: _Vector, other: _Vector) -> float:
    return one[0] * other[0] + one[1] * other[1] + one[2] * other[2]


def _from_edges(place: Place, point: _Vector) -> float:
    """The km from a point to the nearest edge."""
    nearest = pi
    for start, end in place.pieces:
        across = _cross(start, end)
        length = sqrt(_dot(across, across))
        is_beside = _dot(_cross(across, start), point) > 0 < _dot(_cross(end, across), point)
        if length and is_beside:
            nearest = min(nearest, abs(asin(max(-1.0, min(1.0, _dot(point, across) / length)))))
        else:
            nearest = min(nearest, _angle(point, start), _angle(point, end))
    return nearest * EARTH_KM
