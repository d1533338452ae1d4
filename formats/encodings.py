"""The encodings that messages declare, by the names that libxml2 knows them by.

Expat reads UTF-8, UTF-16, US-ASCII and ISO-8859-1 itself; it takes single bytes by a table of
Python's, and text of several bytes a character only once that has been decoded by Python.
Encodings that are no ASCII where ASCII is, and so hide markup (UTF-7, EBCDIC), are not read.

::

    <?xml version="1.0" encoding="UTF8"?>           -> utf-8
    <?xml version="1.0" encoding="iso8859-1"?>      -> iso-8859-1
    <?xml version="1.0" encoding="Shift_JIS"?>      -> shift_jis
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from encodings import normalize_encoding
from encodings.aliases import aliases

UTF_8 = "utf-8"

_DECLARATION = re.compile(
    rb"""<\?xml[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*["'][0-9.]+["']"""
    rb"""[ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*["']([A-Za-z][A-Za-z0-9._:-]{0,39})["']"""
)
_EXPATS = {"utf_8": UTF_8, "ascii": "us-ascii", "latin_1": "iso-8859-1"}
# Python's modules, of what is ASCII where ASCII is; what else is a table is refused by expat.
_SINGLE = re.compile(
    r"iso8859_\d\d?|cp(?!65001)\d{3,4}|koi8_[rtu]|mac_[a-z0-9]+|tis_620"
    r"|kz1048|ptcp154|hp_roman8"
)
_SEVERAL = frozenset(
    (
        *("shift_jis", "shift_jisx0213", "cp932", "euc_jp", "iso2022_jp", "iso2022_jp_2"),
        *("gb18030", "gbk", "gb2312", "hz", "big5", "big5hkscs", "cp950"),
        *("euc_kr", "cp949", "iso2022_kr", "johab"),
    )
)
_MORE = {
    "big_5": "big5",
    "latin_9": "iso8859_15",
    "windows_31j": "cp932",
    "windows_874": "cp874",
    "x_euc_jp": "euc_jp",
    "x_sjis": "shift_jis",
}


def declared_codec(data: bytes) -> str | None:
    """Python's name for what a document in ASCII, or in what contains it, says it is written in.

    None where it says nothing, or names something that is not read.
    """
    if data.startswith(BOM_UTF8):
        return UTF_8
    found = _DECLARATION.match(data)
    if found is None:
        return None
    name = normalize_encoding(found[1].decode()).lower()
    codec = _MORE.get(name) or aliases.get(name, name)
    if codec in _EXPATS:
        return _EXPATS[codec]
    return codec if codec in _SEVERAL or _SINGLE.fullmatch(codec) else None


def takes_several_bytes(codec: str) -> bool:
    """Whether it has characters of several bytes, and is not UTF-8."""
    return codec in _SEVERAL
