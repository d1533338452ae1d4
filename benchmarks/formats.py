"""``formats``: wire size and processing delay of the wire formats (Figures 7 and 8 of the paper).

Generated news messages of the figures' six complexities, with the dictionary of their DTD, and the
messages of each folder of a directory, with the dictionary of the schema in it, if there is one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.benchmark import Benchmark
from benchmarks.wire.measure import Delays, Sizes, measure_delays, measure_sizes
from benchmarks.wire.news import COMPLEXITIES, LARGE, NEWS_DTD, make_news
from benchmarks.wire.plots import draw
from benchmarks.wire.trained import Saving, measure_saving, small_keys, small_table
from formats import (
    EMPTY_DICTIONARY,
    Dictionary,
    FormatError,
    WireFormat,
    derive_dictionary,
    parse_text,
    read_schema,
)

PROFILE = '/news/head/published[@edition.area = "SF"]'
_FOLDER_MESSAGES = 40
_TRAINING = 200


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument(
        "--messages", metavar="N", type=int, default=30, help="of each complexity (default: 30)"
    )
    parser.add_argument(
        "--rounds", metavar="N", type=int, default=7, help="the quickest counts (default: 7)"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=1)
    parser.add_argument(
        "--data", metavar="DIR", type=Path, help="directory whose folders are measured too"
    )
    parser.add_argument(
        "--plots", metavar="DIR", type=Path, help="directory to write pictures to, as PNG and SVG"
    )


@dataclass(frozen=True, slots=True)
class FormatsResult:
    """Sizes in bytes and delays in microseconds, by complexity and by folder."""

    values: Mapping[str, object]
    good: bool = True

    def to_text(self) -> str:
        return table(self.values)

    def to_json(self) -> Mapping[str, object]:
        return self.values


def run(options: argparse.Namespace) -> FormatsResult:
    """All measurements; see ``keys`` for those that are promised."""
    dictionary = derive_dictionary(read_schema("news.dtd", NEWS_DTD))
    assert dictionary is not None
    random = Random(options.seed)
    training = [make_news(random, *random.choice(COMPLEXITIES)) for _ in range(_TRAINING)]
    news = {}
    for depth, repeat in COMPLEXITIES:
        texts = [make_news(random, depth, repeat) for _ in range(options.messages)]
        sizes = measure_sizes(texts, dictionary, training)
        delays = measure_delays(texts, dictionary, PROFILE, options.rounds)
        news[f"{depth}-{repeat}"] = _as_json(sizes, delays)
    large = [make_news(random, *LARGE) for _ in range(options.messages)]
    of_large = measure_delays(large, dictionary, PROFILE, options.rounds)
    folders = {}
    for name, texts, known in _folders(options.data):
        sizes = measure_sizes(texts, known)
        delays = measure_delays(texts, known, PROFILE, max(1, options.rounds // 3))
        has_schema = known is not EMPTY_DICTIONARY
        about = {"messages": len(texts), "schema": has_schema}
        folders[name] = {**about, **_as_json(sizes, delays)}
    small: dict[str, Saving] = {"news": measure_saving(training, dictionary)}
    for name, texts, known in _folders(options.data, None):
        small[name] = measure_saving(texts, known)
    values = {
        **keys(news),
        **large_keys(of_large),
        **small_keys(small),
        "news": news,
        "folders": folders,
        "small": {name: saving.to_json() for name, saving in small.items()},
    }
    if options.plots is not None:
        draw(values, options.plots)
    return FormatsResult(values)


def keys(news: Mapping[str, Mapping[str, object]]) -> dict[str, float]:
    """The promised figures, each a ratio of sums over the six complexities."""

    def total(*path: str) -> float:
        value = 0.0
        for row in news.values():
            at: object = row
            for step in path:
                assert isinstance(at, dict)
                at = at[step]
            assert isinstance(at, float)
            value += at
        return value

    form = WireFormat.DICTIONARY.value
    return {
        "decode_over_expat": total("decode_us", form) / total("expat_us"),
        "decode_over_expat_events": total("decode_us", form) / total("expat_events_us"),
        "decode_over_own_parser": total("decode_us", form) / total("parser_us"),
        "encode_over_decode": total("encode_us", form) / total("decode_us", form),
        "size_over_text": total("bytes", form) / total("bytes", "text"),
        "binary_size_over_text": total("bytes", "binary") / total("bytes", "text"),
        "zstd_over_gzip_of_text": total("bytes", f"{form}+zstd")
        / total("bytes", "gzip of the text"),
        "trained_over_gzip_of_text": total("bytes", "dictionary form, zstd trained")
        / total("bytes", "gzip of the text"),
        "trained_over_exi_compressed": total("median_bytes", "dictionary form, zstd trained")
        / total("median_bytes", "EXI compressed"),
        "forward_hop_over_first_hop": total("forward_hop_us") / total("first_hop_us"),
        "matching_over_forward_hop": total("matching_us") / total("forward_hop_us"),
    }


def large_keys(delays: Delays) -> dict[str, float]:
    """The same for messages of some 9 KB."""
    decode = delays.decode[WireFormat.DICTIONARY.value]
    return {
        "large_decode_over_expat": decode / delays.expat,
        "large_decode_over_expat_events": decode / delays.expat_events,
        "large_decode_over_own_parser": decode / delays.parser,
    }


def table(result: Mapping[str, object]) -> str:
    """The measurements for people."""
    lines = []
    for part in ("news", "folders"):
        rows = result[part]
        assert isinstance(rows, dict)
        for figure in ("bytes", "encode_us", "decode_us"):
            columns = list(rows)
            lines += ["", f"{part}: {figure}", " " * 32 + "".join(f"{c:>12}" for c in columns)]
            for kind in dict.fromkeys(kind for row in rows.values() for kind in row[figure]):
                cells = "".join(f"{row[figure].get(kind, 0):>12,.0f}" for row in rows.values())
                lines.append(f"  {kind:<30}{cells}")
        for figure in (
            "expat_us",
            "expat_events_us",
            "parser_us",
            "first_hop_us",
            "forward_hop_us",
            "matching_us",
        ):
            cells = "".join(f"{row[figure]:>12,.0f}" for row in rows.values())
            lines.append(f"  {figure:<30}{cells}")
    small = result["small"]
    assert isinstance(small, dict)
    lines += ["", *small_table(small), ""]
    lines += [
        f"  {key:<32}{value:.3f}" for key, value in result.items() if isinstance(value, float)
    ]
    return "\n".join(lines).lstrip()


def _as_json(sizes: Sizes, delays: Delays) -> dict[str, object]:
    return {
        "bytes": {**sizes.formats, **sizes.beside},
        "median_bytes": sizes.median,
        "encode_us": delays.encode,
        "decode_us": delays.decode,
        "expat_us": delays.expat,
        "expat_events_us": delays.expat_events,
        "parser_us": delays.parser,
        "first_hop_us": delays.first_hop,
        "forward_hop_us": delays.forward_hop,
        "matching_us": delays.matching,
    }


def _folders(
    data: Path | None, messages_max: int | None = _FOLDER_MESSAGES
) -> Iterator[tuple[str, list[bytes], Dictionary]]:
    """The first messages of each folder, in order of their names, and the dictionary of the schema
    that lies there; what is no message is left out."""
    if data is None:
        return
    for folder in sorted(path for path in data.iterdir() if path.is_dir()):
        texts: list[bytes] = []
        for path in sorted(folder.rglob("*")):
            if len(texts) == messages_max:
                break
            if path.suffix in {".xml", ".cap"}:
                text = path.read_bytes()
                try:
                    parse_text(text)
                except FormatError:
                    continue
                texts.append(text)
        if texts:
            yield folder.name, texts, _dictionary_of(folder)


def _dictionary_of(folder: Path) -> Dictionary:
    for path in sorted(folder.iterdir()):
        if path.suffix in {".dtd", ".xsd", ".rng"}:
            return derive_dictionary(read_schema(path.name, path.read_bytes())) or EMPTY_DICTIONARY
    return EMPTY_DICTIONARY


FORMATS = Benchmark(
    name="formats",
    summary="wire size and processing delay of the wire formats",
    add_options=add_options,
    quick=("--messages", "3", "--rounds", "1"),
    run=run,
)
