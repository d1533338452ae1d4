"""What Prometheus reads of a provider of metadata."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from onyx import DataSource
from onyx.metadata import MetadataProvider
from onyx.metadata.provider_metrics import METRICS, ProviderMetrics
from onyx.metadata.requests import AddRules, PutSchema, Register, asked
from onyx.metadata.serving import Serving
from registration.metadata.documents import MetadataRefused
from tests.onyx.metadata.test_explanation import DOCUMENT, SCHEMA, URI
from tests.onyx.metadata.test_metadata_network import RULE
from tests.onyx.telemetry.test_metrics import measured

OPERATING = Path(__file__).resolve().parents[3] / "docs" / "operating.md"


async def test_a_provider_counts_what_it_has_and_was_asked(tmp_path: Path) -> None:
    with MetadataProvider(tmp_path) as provider:
        serving = Serving(cast("DataSource", None), provider)
        for question in (
            PutSchema(data=SCHEMA, media_type="text/turtle"),
            Register(documents={URI: DOCUMENT}, media_type="text/turtle"),
            AddRules(repository="L1", rules=[(RULE, "")]),
        ):
            await serving.answer("", True, asked(question))
        with pytest.raises(MetadataRefused):
            await serving.answer("", True, b"?")
        await serving.recount()
        text, _ = ProviderMetrics("mdv", serving.counts).text("")
        found = measured(text.decode(), "mdv")
    gauges = ("documents", "rules", "repositories", "revision", "waiting_messages")
    assert [found[f"onyx_metadata_{name}", ()] for name in gauges] == [1, 1, 1, 3, 3]
    assert found["onyx_metadata_questions_total", (("ask", "rule.add"),)] == 1
    assert found["onyx_metadata_refused_total", (("code", "bad-question"),)] == 1
    assert found["onyx_metadata_answer_seconds_count", ()] == 4
    assert found["onyx_ready", ()] == 1
    page = OPERATING.read_text(encoding="utf-8")
    assert not [row.metric.name for row in METRICS if f"`onyx_{row.metric.name}" not in page]
