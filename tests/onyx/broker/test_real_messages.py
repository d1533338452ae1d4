"""Every real message goes through a root broker whole, or is refused with position and reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

from overlay.link.frames import Message, Publish, Refused
from tests.onyx.broker.test_broker_core import Setting, delta

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"
# Cases of reports are in folders of their own, with more than messages in them.
FOLDERS = sorted(path for path in DATA.glob("*") if path.is_dir() and path.name != "reports")
# What is no message of ours: other kinds of files, and XML that asks for a file of the reader.
REFUSED = {"xee.cap", "COPYRIGHT", "nitf-2-5.dtd"}
NOT_XML = {".gz", ".ttl", ".md"}


@pytest.mark.skipif(not FOLDERS, reason="no real messages beside the checkout")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_each_file_goes_through_or_is_refused_with_its_place(folder: Path) -> None:
    setting = Setting()
    setting.announce(root="B4")
    setting.brokers["B5"].send("B4", delta("//*", root="B4"))
    setting.children_ready(root="B4")
    source = setting.beside.peer("source", "s1")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files:
        source.send("s1", Publish(source="s1", format="text", payload=path.read_bytes()))
    forwarded = {frame.number: frame for frame in setting.brokers["B5"].all(Message)}
    refused = {frame.number: frame for frame in source.all(Refused)}
    for number, path in enumerate(files, start=1):
        if path.name in REFUSED or path.suffix in NOT_XML:
            assert refused[number].reason and refused[number].line >= 1, path
            assert number not in forwarded
        else:
            assert number not in refused, f"{path}: {refused[number].reason}"
            assert number in forwarded, path
    assert len(forwarded) + len(refused) == len(files)


def test_the_files_of_this_list_are_what_lxml_refuses_too() -> None:
    """So that the list above cannot hide a fault of ours."""
    if not FOLDERS:
        pytest.skip("no real messages beside the checkout")
    for path in DATA.rglob("*"):
        if path.name in REFUSED:
            with pytest.raises(etree.XMLSyntaxError):
                etree.fromstring(path.read_bytes())
