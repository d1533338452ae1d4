"""The benchmark of the wire formats: its messages are what it says, and its keys are there."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from benchmarks.__main__ import main
from benchmarks.formats import PROFILE
from benchmarks.wire.exi import exi_compressed_size, exi_size
from benchmarks.wire.news import COMPLEXITIES, NEWS_DTD, make_news
from formats import Validator, parse_text, read_schema
from yfilter.matcher import Matcher


@pytest.mark.parametrize(("depth", "repeat"), COMPLEXITIES)
def test_messages_are_valid_and_as_deep_as_they_should_be(depth: int, repeat: int) -> None:
    validator = Validator(read_schema("news.dtd", NEWS_DTD))
    random = Random(depth * 10 + repeat)
    sizes = []
    for _ in range(20):
        text = make_news(random, depth, repeat)
        stream = parse_text(text)
        assert validator.check(text) is None
        assert max(stream.element_depth) + 1 == depth
        subjects = [str(name) for name in map(stream.name_of, range(len(stream)))].count("subject")
        assert 1 <= subjects <= repeat
        sizes.append(len(text))
    assert 400 < sum(sizes) / len(sizes) < 5_000  # as in Figure 7


def test_the_profile_of_the_benchmark_selects() -> None:
    matcher = Matcher()
    matcher.add(PROFILE)
    random = Random(1)
    matched = [bool(list(matcher.match(make_news(random, 4, 1)))) for _ in range(40)]
    assert 0 < sum(matched) < len(matched)


@pytest.mark.parametrize(
    ("xml", "size"),
    [
        # header 8 bits, namespace 2, name 8 + 8, end 2
        (b"<a/>", 4),
        # header 8, a 18, b 20, text 2 + 16, end 1; b 2 + 2 + 8, text 1 + 8, end 1, end 2: 89 bits
        (b"<a><b>x</b><b>x</b></a>", 12),
    ],
)
def test_the_size_of_exi(xml: bytes, size: int) -> None:
    stream = parse_text(xml)
    assert exi_size(stream) == size
    assert exi_compressed_size(stream) >= size


def test_the_promised_keys_and_pictures(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    options = ["--messages", "2", "--rounds", "1", "--plots", str(tmp_path)]
    assert main(["formats", *options, "--json"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"formats-news.png", "formats-news.svg"}
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    for key in (
        "decode_over_expat", "decode_over_own_parser", "size_over_text",
        "forward_hop_over_first_hop",
    ):  # fmt: skip
        assert result[key] > 0
    assert result["size_over_text"] < 0.7
    assert result["trained_over_gzip_of_text"] < 0.6
    assert result["small_trained_over_gzip"] < 0.6
    assert result["small"]["news"]["messages"] > 100
    assert result["trained_over_exi_compressed"] < 1
    assert list(result["news"]) == ["4-1", "6-1", "4-2", "6-2", "4-3", "6-3"]
