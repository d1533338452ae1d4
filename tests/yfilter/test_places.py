"""Places: which are read in which texts, how two lie to each other by definitions of its own, and
that the index finds the same profiles as the interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import acos, atan2, cos, degrees, hypot, isclose, radians, sin, sqrt, tau
from pathlib import Path
from random import Random

import pytest

from formats.errors import MessageRefused
from formats.text import parse_text
from tests.oracle.reference import ReferenceMatcher
from tests.yfilter.evaluated import evaluate
from yfilter import Matcher
from yfilter.engine.linear_paths import routing_query
from yfilter.errors import ProfileRefused
from yfilter.index import place_index
from yfilter.index.place_index import PlaceIndex
from yfilter.language.places import EARTH_KM, Place, distance, read_place, relates, written_test
from yfilter.language.query_parser import parse_expression, parse_profile
from yfilter.language.query_text import unparse

SHARED = Path("/work/shared/data")
LATITUDES = (-90, -89.5, -60, -10.25, 0, 0.5, 33.3, 52.5, 71, 89.9, 90)
LONGITUDES = (-180, -179.5, -120, -0.1, 0, 13.4, 90, 179.2, 180)
JUNK = (*"0123456789", *" ,.+-eE\n|", "circle ", "box ", "polygon ", "nan", "inf", "1_0", "٣", "é")


def place(text: str) -> Place:
    found = read_place(text)
    assert found is not None, text
    return found


def written(points: list[tuple[float, float]]) -> str:
    return " ".join(f"{latitude},{longitude}" for latitude, longitude in points)


def star(rng: Random, centre: tuple[float, float], size: float) -> list[tuple[float, float]]:
    """A ring around a point, each corner of which is seen from it, counted beyond 180 degrees."""
    corners = rng.randint(4, 9)  # less than half a turn between two
    turns = [(corner + rng.uniform(0.1, 0.9)) * tau / corners for corner in range(corners)]
    far = [size * rng.uniform(0.2, 1) for _ in turns]
    ring = zip(turns, far, strict=True)
    return [(centre[0] + r * sin(turn), centre[1] + r * cos(turn)) for turn, r in ring]


def in_star(
    ring: list[tuple[float, float]], centre: tuple[float, float], y: float, x: float
) -> bool:
    """Whether a point is in one of the triangles between the centre and two corners."""
    for at, second in enumerate(ring):
        first = ring[at - 1]
        corners = (first, second, centre)
        sides = [
            (b[1] - a[1]) * (y - a[0]) - (b[0] - a[0]) * (x - a[1])
            for a, b in zip(corners, (*corners[1:], first), strict=True)
        ]
        if all(side >= 0 for side in sides) or all(side <= 0 for side in sides):
            return True
    return False


def turned(longitude: float) -> float:
    return (longitude + 180) % 360 - 180


def km_between(one: tuple[float, float], other: tuple[float, float]) -> float:
    """By Vincenty's formula on the sphere."""
    (y, x), (v, u) = ([radians(number) for number in point] for point in (one, other))
    across = hypot(cos(v) * sin(u - x), cos(y) * sin(v) - sin(y) * cos(v) * cos(u - x))
    along = sin(y) * sin(v) + cos(y) * cos(v) * cos(u - x)
    return EARTH_KM * atan2(across, along)


def some_area(rng: Random, size: float = 3.0) -> str:
    latitude, longitude = rng.uniform(48, 52), turned(rng.uniform(178, 182))
    match rng.randrange(4):
        case 0:
            return f"circle {latitude},{longitude} {rng.choice((0, 30, rng.uniform(1, 300)))}"
        case 1:
            north, east = latitude + rng.uniform(0, size), longitude + rng.uniform(0, size)
            return f"box {latitude},{longitude} {north},{turned(east)}"
        case 2:
            ring = star(rng, (latitude, longitude), rng.uniform(0.1, size))
            return f"polygon {written([(y, turned(x)) for y, x in ring])}"
        case _:
            return f"{latitude},{longitude}"


def points_of(place: Place, rng: Random) -> Iterator[tuple[float, float]]:
    """Points that are surely in a place."""
    if place.radius:
        (latitude, longitude) = place.points[0]
        for _ in range(40):
            bearing, far = (
                rng.uniform(0, tau),
                place.radius * sqrt(rng.random()) / EARTH_KM * 0.9999,
            )
            y = radians(latitude)
            north = sin(y) * cos(far) + cos(y) * sin(far) * cos(bearing)
            east = atan2(sin(bearing) * sin(far) * cos(y), cos(far) - sin(y) * north)
            yield 90 - degrees(acos(north)), longitude + degrees(east)
    elif place.edges:
        for _ in range(400):
            y, x = rng.uniform(place.south, place.north), rng.uniform(place.west, place.east)
            if place.has(y, x):
                yield y, x
    yield from place.points


# -- texts


@pytest.mark.parametrize(
    ("text", "name", "system", "read"),
    [
        ("52.5,13.4", "", "", "52.5,13.4"),
        (" 52.5 13.4\n", "point", "", "52.5,13.4"),
        ("52.5 , 13.4", "", "", "52.5,13.4"),
        ("42.3453 -156.2342 45", "pos", "urn:ogc:def:crs:EPSG:6.6:4979", "42.3453,-156.2342"),
        ("13.4 52.5", "pos", "urn:ogc:def:crs:OGC:1.3:CRS84", "52.5,13.4"),
        ("52.5 13.4", "pos", "EPSG:4326", "52.5,13.4"),
        ("52.5 13.4", "pos", "EPSG:26913", None),
        ("13.4,52.5 14,53", "coordinates", "CRS84", "line 52.5,13.4 53.0,14.0"),
        ("-35.3888,147.0598 25.0", "circle", "", "circle -35.3888,147.0598 25.0"),
        ("-35.3888 147.0598 2500", "circle", "", "circle -35.3888,147.0598 2.5"),
        ("circle 1,2 3", "", "", "circle 1.0,2.0 3.0"),
        ("circle 1 2 3", "", "", None),  # of metres, or km?
        ("circle 1,2 -3", "", "", None),
        ("1,2 3,4", "box", "", "box 1.0,2.0 3.0,4.0"),
        ("box 3,2 1,4", "", "", None),
        ("1 1 1 2 2 2", "polygon", "", "polygon 1.0,1.0 1.0,2.0 2.0,2.0"),
        ("1,1 1,2 1,1", "polygon", "", None),
        ("1,1 1,2 2,2 1,1", "", "", "polygon 1.0,1.0 1.0,2.0 2.0,2.0 1.0,1.0"),
        ("1 1 9 1 2 9", "posList", "", "line 1.0,1.0 9.0,1.0 2.0,9.0"),  # without srsDimension
        ("1 1 1 2", "posList", "", "line 1.0,1.0 1.0,2.0"),
        ("1 1 1 2 2 2", "", "", None),  # a ring or a line?
        ("1 1 1 2 2", "polygon", "", None),
        ("0,190", "", "", "0.0,-170.0"),
        *((text, "point", "", None) for text in ("", "here", "91 0", "0 361", "1_0 2", "nan 1")),
        ("+41.12,-117.61 +40.85,-118.09, +40.86,-118.09, +41.12,-117.61", "polygon", "", None),
    ],
)
def test_which_place_a_text_is(text: str, name: str, system: str, read: str | None) -> None:
    found = read_place(text, name, system)
    assert (found and found.text) == read
    if found:
        assert place(found.text).points == found.points


def test_a_list_of_three_dimensions_is_read_as_its_dimension_says() -> None:
    found = read_place("1 1 9 1 2 9 2 2 9 1 1 9", "posList", "", "3")
    assert found and found.text == "polygon 1.0,1.0 1.0,2.0 2.0,2.0 1.0,1.0"


@pytest.mark.parametrize("seed", range(4))
def test_any_text_is_a_place_or_none(seed: int) -> None:
    rng, read = Random(seed), 0
    for _ in range(4_000):
        text = "".join(rng.choices((*JUNK, "1,2 ", "3 "), k=rng.randint(0, 14)))
        found = read_place(text, rng.choice(("", "pos", "posList", "polygon", "box", "circle")))
        if found:
            read += 1
            assert place(found.text).points == found.points
            box, (y, x) = found.box(), found.points[0]
            assert box.south <= y <= box.north and (x - box.west) % 360 <= box.width
    assert read


# -- relations


@pytest.mark.parametrize("seed", range(3))
def test_a_point_is_in_an_area_as_it_is_in_one_of_its_triangles(seed: int) -> None:
    rng = Random(seed)
    for _ in range(150):
        centre = rng.uniform(-70, 70), rng.choice((0, 90, 179.9, -179.9, rng.uniform(-180, 180)))
        ring = star(rng, centre, rng.choice((0.01, 1, 15)))
        area = place(f"polygon {written([(y, turned(x)) for y, x in ring])}")
        for _ in range(30):
            y, x = (each + rng.uniform(-1, 1) * 15 for each in centre)
            assert area.has(y, turned(x)) == in_star(ring, centre, y, x)
        for (y, x), (v, u) in pairwise(ring):
            at = rng.random()
            assert area.has(y + (v - y) * at, turned(x + (u - x) * at))


@pytest.mark.parametrize("one", [(y, x) for y in LATITUDES for x in LONGITUDES])
def test_distances_are_those_of_another_formula(one: tuple[float, float]) -> None:
    for other in ((y, x) for y in LATITUDES for x in LONGITUDES):
        km = km_between(one, other)
        two = place(written([one])), place(written([other]))
        assert isclose(distance(*two), km, abs_tol=1e-3)
        circle = place(f"circle {written([other])} {km}")
        assert relates("place:intersects", two[0], circle) or km < 1e-6
        assert not relates(
            "place:inside", two[0], place(f"circle {written([other])} {km * 0.99}")
        ) or (km < 1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_relations_agree_with_the_points_of_both(seed: int) -> None:
    rng = Random(seed)
    seen: set[tuple[bool, bool]] = set()
    for _ in range(100):
        one, other = place(some_area(rng, rng.choice((0.5, 3)))), place(some_area(rng, 6))
        meet, inside = (relates(f"place:{name}", one, other) for name in ("intersects", "inside"))
        seen.add((meet, inside))
        far = distance(one, other)
        assert relates("place:intersects", other, one) == meet
        assert relates("place:covers", other, one) == inside
        assert isclose(distance(other, one), far, abs_tol=1e-6)
        assert meet == (far < 1e-6)
        known = [place(written([point])) for point in points_of(one, rng) if abs(point[1]) <= 360]
        near = [distance(point, other) for point in known]
        assert min(near) >= far - 0.02  # by how much an arc may be beside an edge
        if inside:
            assert max(near) < 0.02
        if not other.edges:
            assert inside or one.radius or max(near) > 0 or len(one.points) > 1
    assert seen == {(True, True), (True, False), (False, False)}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        # on the boundary
        ('place:inside("1,1", "box 1,1 2,2")', True),
        ('place:inside("1.5,2", "polygon 1,1 1,2 2,2 2,1")', True),
        ('place:intersects("box 0,0 1,1", "box 1,1 2,2")', True),
        ('place:inside("box 1,1 2,2", "box 1,1 2,2")', True),
        ('place:inside("circle 0,0 5", "circle 0,0 5")', True),
        # across the antimeridian, and all around
        ('place:inside("0,-179.9", "polygon -1,179 -1,-179 1,-179 1,179")', True),
        ('place:inside("0,0", "polygon -1,179 -1,-179 1,-179 1,179")', False),
        ('place:inside("0,180", "box -1,170 1,-170")', True),
        ('place:inside("0,160", "box -1,170 1,-170")', False),
        ('place:inside("box 0,-170 1,170", "box -1,-175 2,175")', True),
        ('place:inside("box 0,175 1,-175", "box -1,-180 2,180")', True),
        ('place:inside("circle -90,5 20000", "box -90,-180 90,180")', True),
        ('place:distance("0,179", "0,-179") < 223', True),
        # poles
        ('place:inside("90,17", "polygon 80,0 80,90 80,180 80,-90")', True),
        ('place:inside("85,-135", "polygon 80,0 80,90 80,180 80,-90")', True),
        ('place:inside("79,-135", "polygon 80,0 80,90 80,180 80,-90")', False),
        ('place:inside("box 84,-10 85,10", "polygon 80,0 80,90 80,180 80,-90")', True),
        (
            'place:inside("polygon 85,9 85,99 85,-171 85,-81", "polygon 80,0 80,90 80,180 80,-90")',
            True,
        ),
        ('place:inside("polygon 80,0 80,90 80,180 80,-90", "box 70,-180 85,180")', False),
        ('place:inside("-90,1", "circle -89,100 112")', True),
        ('place:inside("circle 90,0 500", "box 80,-180 90,180")', True),
        ('place:intersects("box 80,0 90,1", "box 85,100 90,101")', True),
        # an area that is nearly all of the earth, and a circle on its other side
        ('place:inside("polygon 10,0 10,90 10,180 10,-90", "circle -90,0 12000")', False),
        # several places, and none
        ('place:inside(("9,9", "1,1"), "box 1,1 2,2")', True),
        ('place:distance(("9,9", "1,1"), ("1,1", "2,2"))  = 0', True),
        ('place:inside((), "box 1,1 2,2")', False),
        ('empty(place:distance("1,1", ()))', True),
        ('empty(place:read(("no", "place")))', True),
        ('place:read(("no", "1 2")) = "1.0,2.0"', True),
        ('place:known("box 1,1 2,2") = "box 1.0,1.0 2.0,2.0"', True),
    ],
)
def test_how_two_places_lie(condition: str, expected: bool) -> None:
    expression = parse_expression(condition)
    assert evaluate(expression, parse_text(b"<a/>")) == [expected]
    assert parse_expression(unparse(expression)) == expression
    matcher = Matcher()
    matcher.add(f"/a[{condition}]")
    assert bool(matcher.matched_ids(b"<a/>")) == expected


@pytest.mark.parametrize("text", ["", "here", "circle 52 13 30", "polygon 1,1 2,2", "95,0"])
@pytest.mark.parametrize("call", ['place:inside(b, "{}")', '5 > place:distance("{}", b)'])
def test_a_text_of_a_profile_that_is_no_place_is_refused(call: str, text: str) -> None:
    with pytest.raises(ProfileRefused, match="is no place") as caught:
        parse_profile(f"//a[{call.format(text)}]")
    assert caught.value.code == "error"


# -- the index


@pytest.mark.parametrize("seed", range(4))
def test_the_index_finds_all_that_hold(seed: int) -> None:
    rng, index = Random(seed), PlaceIndex()
    asked: dict[int, str] = {}
    for number in range(400):
        if asked and rng.random() < 0.3:
            gone = rng.choice(list(asked))
            del asked[gone]
            index.remove(gone)
        test = rng.choice(("place:inside", "place:covers", "place:intersects", "place:distance"))
        limit = (rng.choice(("<", "<=")), rng.choice((0, 50.5, 1e9, -1)))
        area = some_area(rng, rng.choice((0.01, 1, 400)))
        said = written_test(test, area, *(limit if test == "place:distance" else ()))
        if said is None:
            continue  # a ring that goes too far
        index.add(number, said)
        asked[number] = said
        if number % 4 == 0:
            text = some_area(rng)
            holding = {
                one for one, each in asked.items() if place_index.read_test(each).holds(place(text))
            }
            assert set(index.find(text)) == holding
    for number in asked:
        index.remove(number)
    assert len(index) == 0 and not index.find("50,180")


CONDITIONS = (
    '//p[place:inside(., "{}")]',
    '//e[place:intersects(p, "{}")]',
    '//e[place:covers("{}", p)][@k = "1"]',
    '//e[place:covers(p, "{}")]',
    '//e[place:distance(p, "{}") < 40]',
    '//e[60.5 >= place:distance("{}", p)]',
    '//e[place:distance(p, "{}") > 200]',
    '//e[not(place:inside(p, "{}"))]',
    '//e[@k = "2" or place:inside(p, "{}")]',
    '//m[some $p in e/p satisfies place:inside($p, "{}")]',
    '//m[count(e/p[place:inside(., "{}")]) > 1]',
    'for $e in //e where place:inside($e, "{}") return <r>{{place:read($e)}}</r>',
)


@pytest.mark.parametrize("seed", range(3))
def test_profiles_match_as_the_interpreter_says(seed: int) -> None:
    rng, matcher, reference = Random(seed), Matcher(), ReferenceMatcher()
    for number in range(120):
        text = rng.choice(CONDITIONS).format(some_area(rng))
        for each in (matcher, reference):
            each.add(text, str(number))
    for turn in range(25):
        if turn == 12:
            for number in range(0, 120, 2):
                for each in (matcher, reference):
                    each.remove(str(number))
        systems = ("", ' srsName="CRS84"', ' srsName="EPSG:26913"')
        items = "".join(
            f'<e k="{rng.randint(1, 2)}"{rng.choice(systems)}><p>'
            f"{rng.choice((some_area(rng), some_area(rng), 'no place', ''))}</p></e>"
            for _ in range(rng.randint(1, 4))
        )
        message = parse_text(f"<m>{items}</m>".encode())
        found = {each: set(each.matched_ids(message)) for each in (matcher, reference)}
        assert found[matcher] == found[reference]


def test_many_areas_are_looked_up_and_no_candidate_verified() -> None:
    matcher = Matcher()
    for number in range(500):
        matcher.add(f'//p[place:inside(., "circle {number / 10},{number / 5} 3")]', f"p{number}")
        matcher.add(f'//e[place:distance(p, "{number / 10},{number / 5}") < 2]', f"d{number}")
    assert set(matcher.matched_ids(b"<e><p>12.31 24.6</p></e>")) == {"p123", "d123"}
    sizes = matcher.statistics()
    assert (sizes.operators, sizes.candidates_profile) == (2, 0)  # the columns place:read()


def test_a_search_that_costs_too_much_leaves_all_who_ask_for_it_in_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(place_index, "FIND_MAX", 3)
    matcher = Matcher()
    for number in range(20):
        matcher.add(f'//p[place:inside(., "circle 1,1 {number + 1}")]', str(number))
    found = matcher.deliver(parse_text(b"<p>1 1.1</p>"))
    told = {matcher.id_of(number): one.exceeded for one in found for number in one.numbers}
    assert told.keys() == {str(number) for number in range(20)}
    assert {exceeded.code for exceeded in told.values() if exceeded} == {"too-many-visits"}


def test_windows_of_time_are_ranges_of_the_index() -> None:
    matcher = Matcher()
    for day in range(10, 28):
        first, end = (f'xs:dateTime("2026-02-{each}T00:00:00Z")' for each in (day, day + 1))
        matcher.add(f"//e[sent >= {first}][sent < {end}]", str(day))
    assert list(matcher.matched_ids(b"<e><sent>2026-02-14T23:59:59-00:00</sent></e>")) == ["14"]
    assert matcher.statistics().operators == 1  # the column sent


@pytest.mark.parametrize(
    ("profile", "routed"),
    [
        ('//e[place:inside(p, "box 1,1 2,2")]', '//e/p[place:inside(., "box 1,1 2,2")]'),
        ('//e[place:covers("1,1", p/@k)]', '//e/p[@k[place:covers("1,1", .)]]'),
        ('//e[9 > place:distance(p, "1,1")]', '//e/p[place:distance(., "1,1") < 9]'),
        ('//e[place:distance(p, "1,1") > 9]', "//e"),
        ("//e[place:inside(p, q)]", "//e"),
    ],
)
def test_routing_queries_ask_for_the_place(profile: str, routed: str) -> None:
    (conjunction,) = routing_query(parse_profile(profile))
    assert str(conjunction) == routed


# -- messages


GML = """<f xmlns:g="urn:g"><g:Polygon srsName="urn:ogc:def:crs:OGC:1.3:CRS84"><g:exterior>
<g:LinearRing><g:posList>10 50 11 50 11 51 10 51 10 50</g:posList></g:LinearRing></g:exterior>
<g:interior><g:LinearRing><g:posList>60 10.4 60.5 10.6 60.6 10.6 60 10.4</g:posList></g:LinearRing>
</g:interior></g:Polygon><at>50.5,10.5</at></f>"""


def test_an_element_stands_for_the_places_in_it() -> None:
    matcher = Matcher()
    matcher.add('/f[place:covers(*:Polygon, "50.5,10.5")]', "covers")
    matcher.add("/f[place:inside(at, *:Polygon)]", "both")
    matcher.add('/f[place:intersects(*:Polygon, "circle 10.4,60 99")]', "hole")
    matcher.add('/f[place:covers(*:Polygon, "10.5,50.5")]', "turned")
    assert set(matcher.matched_ids(GML.encode())) == {"covers", "both"}


@pytest.mark.skipif(
    not (SHARED / "cap").is_dir(), reason="the messages are not part of the project"
)
@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ('//*:polygon[place:covers(., "42.0,-82.6")]', {"canada.cap"}),
        ('//*:polygon[place:covers(., "55.5,-107.5")]', {"canada_signed.cap"}),
        ("//*:polygon[empty(place:read(.))]", {"noaa_errors.cap"}),
        ('//*:circle[place:inside("-35.2,147.1", .)]', {"australia.cap"}),
        ('//*:circle[place:distance(., "38.9,-122.8") < 20]', {"earthquake_signed.cap"}),
        ('//*:polygon[place:intersects(., "box 42,-83 43,-82.9")]', {"canada.cap"}),
        ('//*[place:covers(*:polygon, "30,45")]', {"georss_polygon.xml"}),
        ('//*:where[place:covers(., "30,45")]', {"gml_polygon.xml"}),
        ('//*:pos[place:inside(., "circle 36.9,31.2 30")]', {"gml_point.xml"}),
        ('//*:where[place:distance(., "42.3453,-156.2342") = 0]', {"gml_point_3d.xml"}),
        ("//*:posList[exists(place:read(.))]", {"gml_polygon.xml"}),  # the line is in UTM
    ],
)
def test_real_messages_are_found(condition: str, files: set[str]) -> None:
    matcher = Matcher()
    matcher.add(condition)
    found = set()
    for file in [*(SHARED / "cap").iterdir(), *(SHARED / "feeds").glob("g*.xml")]:
        try:
            if matcher.matched_ids(file.read_bytes()):
                found.add(file.name)
        except MessageRefused:
            continue
    kinds = {name for name in found if not name.startswith(tuple(one[:5] for one in files))}
    assert files <= found and not kinds, found
