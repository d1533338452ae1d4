"""``onyx.spark.filter``: which profiles match each message of a frame, as the engine says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import onyx.spark
from onyx.spark.filtering import Population, SparkMisused
from yfilter import Matcher

PROFILES = {
    "ann": '/m[contains(t, "storm")]',
    "bob": "/m[@n > 2]",
    "cid": "for $t in /m/t return <t>{string($t)}</t>",
    "dan": "for $t in /m/t return <t>{string($t)}</t>",
}
TEXTS = [f'<m n="{n}"><t>{"storm" if n % 2 else "calm"}</t></m>' for n in range(5)]


@pytest.fixture
def news(spark: Any) -> Any:
    """Messages 0 to 4, one that is broken and one that is null."""
    rows = [*enumerate(TEXTS), (5, "<m>\n<m"), (6, None)]
    return spark.createDataFrame(rows, "id int, message string").repartition(2)


def by_id(frame: Any) -> dict[int, Any]:
    return {row["id"]: row for row in frame.collect()}


def test_a_row_a_message_with_the_ids_that_the_engine_finds(news: Any) -> None:
    found = by_id(onyx.spark.filter(news, PROFILES))
    matcher = Matcher()
    for name, text in PROFILES.items():
        matcher.add(text, name)
    for number, text in enumerate(TEXTS):
        wanted = sorted(matcher.matched_ids(text.encode()))
        assert sorted(found[number].profiles) == wanted
        assert found[number].error is None
    assert found[3].profiles
    assert found[5].profiles == found[6].profiles == []
    assert (found[5].error.line, found[6].error.code) == (2, "no-message")


def test_results_come_once_for_all_profiles_that_get_them(news: Any) -> None:
    frame = onyx.spark.filter(news, PROFILES, results=True, mode="DROPMALFORMED")
    rows = [row for row in frame.collect() if row["id"] == 3]
    found = sorted((sorted(row.profiles), row.results) for row in rows)
    assert found == [(["ann", "bob"], [TEXTS[3]]), (["cid", "dan"], ["<t>storm</t>"])]
    assert {row.error for row in rows} == {None}


def test_profiles_come_from_frames_and_files_messages_as_bytes_and_places_as_numbers(
    spark: Any, news: Any, tmp_path: Path
) -> None:
    table = spark.createDataFrame(list(PROFILES.items()), "profile string, text string")
    assert Population.of(spark, table).ids == ("ann", "bob", "cid", "dan")
    file = tmp_path / "p.txt"
    file.write_text("/m[@n = 4]\n")
    assert Population.of(spark, str(file)).texts == ("/m[@n = 4]",)
    data = news.selectExpr("id", "cast(message as binary) as body")
    found = by_id(onyx.spark.filter(data, PROFILES, message="body", numbers=True))
    assert sorted(found[3].profiles) == [0, 1, 2, 3]
    assert sorted(found[4].profiles) == [1, 2, 3]


def test_what_is_neither_a_frame_nor_profiles_is_told() -> None:
    with pytest.raises(SparkMisused, match="df is list; expected a DataFrame"):
        onyx.spark.filter(TEXTS, PROFILES)
    with pytest.raises(SparkMisused, match="profiles are set; expected a mapping, a frame or path"):
        Population.of(None, {"/m"})


def test_bad_input_is_told_in_a_sentence(news: Any) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"message": "text"}, "no column text; there are id, message"),
        ({"message": "id"}, "column id is int; expected string or binary"),
        ({"keep": ["x"]}, "no column x"),
        ({"mode": "ANY"}, "mode 'ANY'; expected PERMISSIVE, DROPMALFORMED, FAILFAST"),
    ]
    for options, said in wrong:
        with pytest.raises(SparkMisused, match=said):
            onyx.spark.filter(news, PROFILES, **options)
    with pytest.raises(SparkMisused, match=r"profile eve: line 1, column \d"):
        onyx.spark.filter(news, {"eve": "/m["})
    with pytest.raises(SparkMisused, match="column error would be there twice: rename it"):
        onyx.spark.filter(news.selectExpr("message", "id error"), PROFILES)
    with pytest.raises(Exception, match="RowRefused: line 2") as told:
        onyx.spark.filter(news.where("id = 5"), PROFILES, mode="FAILFAST").collect()
    assert "Traceback" not in str(told.value)


def test_a_stream_is_filtered_as_a_batch_is(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = [json.dumps({"id": number, "message": text}) for number, text in enumerate(TEXTS)]
    (tmp_path / "in" / "news.json").write_text("\n".join(lines))
    stream = spark.readStream.schema("id int, message string").json(str(tmp_path / "in"))
    matched = onyx.spark.filter(stream, PROFILES).where("array_contains(profiles, 'ann')")
    query = (
        matched.writeStream.format("memory").queryName("storms").trigger(availableNow=True).start()
    )
    query.awaitTermination()
    assert sorted(row.id for row in spark.table("storms").collect()) == [1, 3]
