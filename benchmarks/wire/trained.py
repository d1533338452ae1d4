"""What a compression dictionary saves on small messages, beside gzip of their text.

Each message is compressed with a dictionary trained on others of its source: the messages are
dealt into FOLDS, and what is in one is compressed with what was trained on the rest, by the
function and within the limits of a root broker.  A folder stands for a source.  Messages of up to
16 KiB are trained on, those under SMALL_BYTES are counted.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from formats import (
    EMPTY_DICTIONARY,
    Compression,
    Dictionary,
    WireFormat,
    compress,
    encode,
    parse_text,
    train,
)
from overlay.limits import TrainingLimits

SMALL_BYTES = 4096
FOLDS = 10
LEVELS = (3, 9, 19)
_LIMITS = TrainingLimits()
FORMS = (WireFormat.TEXT, WireFormat.BINARY, WireFormat.DICTIONARY)


@dataclass(frozen=True, slots=True)
class Saving:
    """One source: ``messages`` under SMALL_BYTES, their mean bytes with gzip -9; and for each form
    and level, what all take with a trained dictionary over what they take with gzip (None: too
    few to train on)."""

    messages: int
    gzip_bytes: float
    over_gzip: dict[str, float | None]

    def to_json(self) -> dict[str, object]:
        return {
            "messages": self.messages,
            "gzip_bytes": self.gzip_bytes,
            "over_gzip": self.over_gzip,
        }


def measure_saving(texts: Iterable[bytes], dictionary: Dictionary = EMPTY_DICTIONARY) -> Saving:
    """``dictionary``: the words of the source's schema; without any the dictionary form is left
    out."""
    texts = [text for text in texts if len(text) <= _LIMITS.sample_bytes_max]
    Random(1).shuffle(texts)
    small = [number for number, text in enumerate(texts) if len(text) < SMALL_BYTES]
    gzipped = sum(len(gzip.compress(texts[number], 9, mtime=0)) for number in small)
    ratios: dict[str, float | None] = {}
    for form in FORMS if dictionary is not EMPTY_DICTIONARY else FORMS[:2]:
        # The bytes of a source's text travel as they are.
        made = [t if form is WireFormat.TEXT else _in_form(t, form, dictionary) for t in texts]
        for level, size in _packed_bytes(made, small).items():
            ratios[f"{form} {level}"] = size / gzipped if size is not None else None
    return Saving(len(small), gzipped / max(1, len(small)), ratios)


def small_keys(savings: Mapping[str, Saving]) -> dict[str, float]:
    """The promised figure: of the sources that have a dictionary the one that gains least, text
    at the default level."""
    ratios = [saving.over_gzip["text 3"] for saving in savings.values()]
    return {"small_trained_over_gzip": max(ratio for ratio in ratios if ratio is not None)}


def small_table(savings: Mapping[str, Mapping[str, object]]) -> list[str]:
    """The savings, as JSON, for people."""
    lines = [f"messages under {SMALL_BYTES} bytes, dictionary trained on others, over gzip"]
    for name, saving in savings.items():
        ratios = saving["over_gzip"]
        assert isinstance(ratios, dict)
        if not lines[1:]:
            lines.append(" " * 32 + "".join(f"{kind:>15}" for kind in ratios))
        cells = "".join(f"{'-' if r is None else f'{r:.2f}':>15}" for r in ratios.values())
        lines.append(f"  {name:<20}{saving['messages']:>10}{cells}")
    return lines


def _in_form(text: bytes, form: WireFormat, dictionary: Dictionary) -> bytes:
    return encode(parse_text(text), form, dictionary)


def _packed_bytes(made: Sequence[bytes], small: Sequence[int]) -> dict[int, int | None]:
    """Of the small ones together, by level; None when no dictionary is worth it for some fold."""
    sizes: dict[int, int | None] = dict.fromkeys(LEVELS, 0)
    for fold in range(FOLDS):
        rest = [form for number, form in enumerate(made) if number % FOLDS != fold]
        trained = train(_samples(rest), _LIMITS.dictionary_bytes_max).dictionary
        if trained is None:
            return dict.fromkeys(LEVELS)
        counted = [made[number] for number in small if number % FOLDS == fold]
        for level in LEVELS:
            packed = sum(len(compress(form, Compression.ZSTD, level, trained)) for form in counted)
            sizes[level] = (sizes[level] or 0) + packed
    return sizes


def _samples(forms: Sequence[bytes]) -> list[bytes]:
    """As many as a root broker would take."""
    samples: list[bytes] = []
    for form in forms[: _LIMITS.samples]:
        if sum(map(len, samples)) < _LIMITS.samples_bytes_max:
            samples.append(form)
    return samples
