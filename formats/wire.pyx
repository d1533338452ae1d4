"""The binary and the dictionary form of a message: its columns, less what both ends know.

WireModel holds the expectations of a Dictionary.  BinaryWriter and BinaryReader follow it event by
event; names, attribute sets and values have a table each.  docs/formats.md gives the layout to the
byte, and formats/binary.py the frames around it.
"""

# The types of numbers that are imported below.
cdef long long NUMBER_MAX
cdef int AFTER, ATTRIBUTES, COMMENT, DECLARATION, ELEMENT, END, INSTRUCTION, TEXT
cdef int PROBES_MAX, WITH_TEXT

from array import array
from collections.abc import Sequence
from itertools import accumulate

from formats.characters import is_processing_instruction, is_utf_8
from formats.element_stream import ElementStream
from formats.errors import DecodeError
from formats.grammar import Grammar
from formats.known_names import KnownNames
from formats.limits import MessageLimits
from formats.name_faults import binding_fault, name_fault
from formats.names import XML_NAMESPACE, QualifiedName
from formats.grammar import (
    AFTER,
    ATTRIBUTES,
    COMMENT,
    DECLARATION,
    ELEMENT,
    END,
    INSTRUCTION,
    NUMBER_MAX,
    PROBES_MAX,
    TEXT,
    WITH_TEXT,
)

cimport cython
from cpython.array cimport array as Array
from libc.string cimport memcpy

from formats.columns cimport ColumnWriter, NameTable


# -------------------------------------------------------------------------------------------------
# The rows of an ElementStream's column, for hot modules that read them while the stream is there.

cdef inline int* numbers_of(Array column) noexcept:
    return column.data.as_ints

cdef inline unsigned char* bytes_of(Array column) noexcept:
    return column.data.as_uchars


# -------------------------------------------------------------------------------------------------
# WireBytes: a place in the bytes of a binary form, from which numbers are read.
#
# ``at`` is the next byte, ``stop`` the end of the run that is being read, ``size`` that of the
# whole form.  A number is a varint: seven bits per byte, lowest first, in as few bytes as possible.


@cython.final
cdef class WireBytes:
    """One form after the other (``begin``)."""

    cdef readonly bytes form
    cdef const unsigned char* data
    cdef public Py_ssize_t at, stop
    cdef readonly Py_ssize_t size

    cpdef begin(self, bytes form, Py_ssize_t at):
        self.form = form
        self.data = form
        self.at = at
        self.size = len(form)
        self.stop = self.size

    cpdef int number(self) except -1:
        """The next number; DecodeError unless it ends before ``stop``."""
        cdef unsigned char byte
        if self.at < self.stop:
            byte = self.data[self.at]
            if byte < 0x80:
                self.at += 1
                return byte
        return self._long_number()

    cdef int _long_number(self) except -1:
        cdef long long value = 0
        cdef int shift = 0
        cdef unsigned char byte
        while True:
            if self.at >= self.stop:
                self.refuse("truncated", "the bytes end inside a number or before it")
            byte = self.data[self.at]
            self.at += 1
            value |= <long long>(byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift >= 35:
                self.refuse("bad-number", "a number of more than five bytes")
        if value > NUMBER_MAX or (byte == 0 and shift > 7):
            self.refuse("bad-number", f"{value} is too large or not in its shortest form")
        return value

    cpdef refuse(self, str code, str reason):
        """DecodeError, at the place that was read last."""
        raise DecodeError(code, reason, min(self.at, self.size))


def write_number(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


# -------------------------------------------------------------------------------------------------
# WireWords: the strings and names that have a number on a link, which heads are made of.
#
# Beside a Dictionary's own it knows the names that were in order before, whoever's they were.


@cython.final
cdef class WireWords:
    """``names`` and ``strings`` by number, and the numbers by them."""

    cdef readonly object strings, names, known_names
    cdef readonly dict name_numbers, string_numbers
    cdef readonly int name_count
    cdef readonly NameTable name_table

    def __init__(self, strings: Sequence[str], names: Sequence[tuple[str, str]]) -> None:
        self.strings = strings
        self.string_numbers = {word: number for number, word in enumerate(strings)}
        self.names = names  # namespace, local name
        self.name_numbers = {name: number for number, name in enumerate(names)}
        self.name_count = len(names)
        self.known_names = KnownNames()
        self.name_table = NameTable() if not names else None  # made for names without a number


# -------------------------------------------------------------------------------------------------
# WireNames: the head of a binary form, which says what the name numbers of a message mean.
#
# A head is read once for all messages that have the same (WireModel remembers it): its bindings and
# names are checked here, so that reading a message's structure is only looking them up.  What
# depends on where a name stands (whether its prefix means its namespace there) is the reader's.
#
# Bindings are (prefix, namespace) pairs: number 0 is neither, 1 the prefix ``xml``, from 2 on they
# are the head's.  Name numbers begin with the dictionary's, which say only (namespace, local):
# their prefix is that of the first binding to the namespace.


@cython.final
cdef class WireNames:
    """What one head says.

    names      [name] QualifiedName, None where it was not needed yet
    binding    [name] its binding, UNRESOLVED likewise
    meaning    [name] the same for names of the same namespace and local name
    size       [name] bytes as it stands in a text
    is_xmlns   [name] no attribute may be called so
    prefix     [binding] the number of its prefix; 0 is no prefix
    """

    cdef bytes _head
    cdef Py_ssize_t _at, _offset
    cdef WireWords _words
    cdef readonly object limits
    cdef readonly list names, bindings
    cdef readonly int count, binding_count, prefix_count
    cdef int[::1] binding, meaning, size, prefix
    cdef unsigned char[::1] is_xmlns
    cdef dict _first_binding

    def __init__(self, words: WireWords, head: bytes, offset: int, limits: MessageLimits) -> None:
        self._head = head
        self._at = 0
        self._offset = offset
        self._words = words
        self.limits = limits
        self._read_bindings()
        self._read_names()
        if self._at != len(head):
            self._refuse("bad-structure", "the head should end here")

    cdef bint resolve(self, int number) except -1:
        """Makes a name of the dictionary usable; False if no binding leads to its namespace."""
        namespace, local = self._words.names[number]
        binding = self._first_binding.get(namespace, UNRESOLVED)
        if binding < 0:
            return False
        prefix = self.bindings[binding][0]
        found = self._words.known_names.of(prefix, namespace, self.limits).get(local)
        if found is None:
            found = self._check(QualifiedName(prefix, namespace, local))
        self._set(number, binding, number, found)
        return True

    cdef _set(self, int number, int binding, int meaning, tuple known):
        name, _, size, is_xmlns = known
        self.names[number] = name
        self.binding[number] = binding
        self.meaning[number] = meaning
        self.size[number] = size
        self.is_xmlns[number] = is_xmlns

    cdef tuple _check(self, name):
        """The facts about a name that was not seen before."""
        fault = name_fault(name, self.limits.name_bytes_max, self.limits.namespace_bytes_max)
        if fault is not None:
            raise DecodeError(*fault, self._offset + self._at)
        remembered = self._words.known_names
        return remembered.learn(remembered.of(name.prefix, name.namespace, self.limits), name)

    cdef _read_bindings(self):
        count = self._number()
        if count > len(self._head):
            self._refuse("bad-count", f"{count} bindings in a head of {len(self._head)} bytes")
        self.bindings = [("", ""), ("xml", XML_NAMESPACE)]
        for _ in range(count):
            binding = (self._word(), self._word())
            limits = self.limits
            fault = binding_fault(*binding, limits.name_bytes_max, limits.namespace_bytes_max)
            if fault is not None:
                self._refuse(fault[0], fault[1])
            if binding in self.bindings[:2]:
                self._refuse("bad-namespace", "this binding needs no number")
            self.bindings.append(binding)
        if len(set(self.bindings)) < len(self.bindings):
            self._refuse("bad-namespace", "a binding stands twice")
        prefixes: dict[str, int] = {"": 0}
        self.prefix = array(
            "i", [prefixes.setdefault(prefix, len(prefixes)) for prefix, _ in self.bindings]
        )
        self.prefix_count = len(prefixes)
        self.binding_count = len(self.bindings)
        self._first_binding: dict[str, int] = {}
        for number, (_, namespace) in enumerate(self.bindings):
            self._first_binding.setdefault(namespace, number)

    cdef _read_names(self):
        cdef int number, binding, first
        cdef int known = self._words.name_count
        own = self._number()
        if own > len(self._head):
            self._refuse("bad-count", f"{own} names in a head of {len(self._head)} bytes")
        limits = self.limits
        if own > limits.names_max:
            reason = f"{own} names, at most {limits.names_max} are allowed"
            self._refuse("too-many-names", reason)
        self.count = known + own
        self.names: list[QualifiedName | None] = [None] * self.count
        # One more, since a view of nothing is not to be had.
        self.binding = array("i", [UNRESOLVED]) * (self.count + 1)
        self.meaning = array("i", bytes(4 * (self.count + 1)))
        self.size = array("i", bytes(4 * (self.count + 1)))
        self.is_xmlns = bytearray(self.count + 1)
        cdef Py_ssize_t start = self._at
        table = self._words.name_table
        try:
            if table is not None and self._find_names(table):
                return
        except UnicodeDecodeError:
            self._at = start
        remembered = self._words.known_names
        named = [remembered.of(*pair, limits) for pair in self.bindings]
        meanings: dict[tuple[str, str], int] = {}
        for number in range(known, self.count):
            binding = self._number()
            if binding >= len(named):
                self._refuse("bad-structure", f"no binding {binding}")
            local = self._word()
            found = named[binding].get(local)
            if found is None:
                prefix, namespace = self.bindings[binding]
                found = self._check(QualifiedName(prefix, namespace, local))
            meaning = found[1]
            first = self._words.name_numbers.get(meaning, UNRESOLVED) if known else UNRESOLVED
            if first == UNRESOLVED:
                first = meanings.setdefault(meaning, number)
            elif self._first_binding[meaning[0]] == binding:
                self._refuse("bad-name", f"name {found[0]} is the dictionary's")
            self._set(number, binding, first, found)
        # Names of different meanings are different.
        if len(meanings) < own and len(set(self.names[known:])) < own:
            self._refuse("bad-name", "a name has two numbers")

    cdef bint _find_names(self, NameTable table) except -1:
        """The own names by their bytes; False if something has to be looked at as text."""
        cdef const unsigned char* data = self._head
        cdef Py_ssize_t name_max = self.limits.name_bytes_max
        cdef Py_ssize_t start = self._at
        cdef Py_ssize_t at
        cdef int number, binding, size, used
        cdef int[::1] bindings
        table.begin(len(self._head))
        numbers = [table.bind(prefix.encode(), uri.encode()) for prefix, uri in self.bindings]
        numbers[XML_BINDING] = XML_BINDING
        bindings = array("i", numbers)
        for number in range(self.count):
            binding = self._number()
            size = self._number()
            at = self._at
            if binding >= len(bindings) or bindings[binding] < 0 or size & 1:
                break
            size = size >> 1
            if not 0 < size <= name_max or at + size > len(self._head):
                break
            self._at = at + size
            used = table.used
            if table.find(data, at, self._at, at - 1, bindings[binding], 0) != number:
                break
            name = table.last_name()
            if table.used > used and self._is_wrong(name):
                table.spoil()
                break
            self.names[number] = name
            self.binding[number] = binding
            self.meaning[number] = table.first_of_meaning(number)
            self.is_xmlns[number] = size == 5 and data[at] == ord("x") and str(name) == "xmlns"
            self.size[number] = size
            if name.prefix:
                self.size[number] += len(name.prefix.encode()) + 1
        else:
            return True
        self._at = start
        return False

    cdef bint _is_wrong(self, name) except -1:
        limits = self.limits
        return name_fault(name, limits.name_bytes_max, limits.namespace_bytes_max) is not None

    cdef _word(self):
        """A string: literal, or the dictionary's."""
        cdef Py_ssize_t start, end
        cdef int value = self._number()
        cdef Py_ssize_t number = value >> 1
        if value & 1:
            if number >= len(self._words.strings):
                self._refuse("bad-structure", f"the dictionary has no string {number}")
            word: str = self._words.strings[number]
            return word
        start = self._at
        end = start + number
        if end > len(self._head):
            self._refuse("truncated", f"a string of {number} bytes ends behind the head")
        self._at = end
        try:
            return self._head[start:end].decode()
        except UnicodeDecodeError:
            self._at = start
            self._refuse("bad-string", "a string is not UTF-8")

    cdef int _number(self) except -1:
        """A varint."""
        cdef long long byte
        cdef int shift = 0
        cdef long long value = 0
        while True:
            if self._at >= len(self._head):
                self._refuse("truncated", "the head ends inside a number")
            byte = self._head[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift >= 35:
                self._refuse("bad-number", "a number of more than five bytes")
        if value > 0x7FFFFFFF or (byte == 0 and shift > 7):
            self._refuse("bad-number", f"{value} is too large or not in its shortest form")
        return value

    cdef _refuse(self, str code, str reason):
        raise DecodeError(code, reason, self._offset + self._at)


# -------------------------------------------------------------------------------------------------
# WireHead: the head of a binary form, as its writer makes it (the reader's side is WireNames).
#
# A name is the dictionary's where that says (namespace, local) and the prefix is that of the first
# binding to the namespace; all others are the head's own, in the order of the stream.


_Binding = tuple[str, str]  # prefix, namespace


@cython.final
cdef class WireHead:
    """``form``: its size and its bytes; ``number`` [name of the stream] on the wire, ``declared``
    [declaration of the stream] its binding; ``count`` all name numbers there are."""

    cdef readonly list names, declarations, declared
    cdef readonly bytes form
    cdef readonly int count
    cdef int[::1] number

    def __init__(self, stream: ElementStream, words: WireWords) -> None:
        self.names = list(stream.names)
        self.declarations = list(stream.declarations)
        bindings: dict[_Binding, int] = {("", ""): 0, ("xml", XML_NAMESPACE): 1}
        first: dict[str, int] = {"": 0, XML_NAMESPACE: 1}
        used = [(name.prefix, name.namespace) for name in self.names]
        for binding in (*used, *self.declarations):
            number = bindings.setdefault(binding, len(bindings))
            first.setdefault(binding[1], number)
        own: list[bytes] = []
        numbers = array("i")
        for name, binding in zip(self.names, used, strict=True):
            known = words.name_numbers.get((name.namespace, name.local))
            if known is not None and first[name.namespace] == bindings[binding]:
                numbers.append(known)
            else:
                numbers.append(words.name_count + len(own))
                own.append(write_number(bindings[binding]) + _word(name.local, words))
        bound = [_word(word, words) for binding in list(bindings)[2:] for word in binding]
        form = b"".join((write_number(len(bindings) - 2), *bound, write_number(len(own)), *own))
        self.form = write_number(len(form)) + form
        self.count = words.name_count + len(own)
        self.number = numbers
        self.declared = [bindings[binding] for binding in self.declarations]


def _word(word: str, words: WireWords) -> bytes:
    number = words.string_numbers.get(word)
    if number is not None:
        return write_number(2 * number + 1)
    encoded = word.encode()
    return write_number(2 * len(encoded)) + encoded


# -------------------------------------------------------------------------------------------------
# WireModel: what both ends of a link expect of a message before its first byte (docs/formats.md).
#
# The arrays behind a Dictionary, as the reader and the writer of the binary forms use them: which
# *event* to expect in which *context*, which attributes to expect on which element, and the numbers
# of frequent values.

cdef enum:
    VALUE_BYTES_MAX = 256  # longer values are not looked up


_HEADS_MAX = 64  # heads remembered, and names in all of them
_HEAD_NAMES_MAX = 100_000
_HEAD_BYTES_MAX = 4_096


@cython.final
cdef class WireModel:
    """One dictionary's expectations; shared by all messages, changed by none."""

    cdef readonly WireWords words
    cdef readonly dict set_numbers
    cdef dict _read, _written
    cdef readonly int set_count, value_count
    cdef int[::1] predicted
    cdef int[::1] expected_set, set_start, set_members, value_start
    cdef bytes _values
    cdef const unsigned char* value_data
    cdef int[::1] _value_slots
    cdef unsigned int _value_mask

    def __init__(self, strings: Sequence[str], values: Sequence[bytes], grammar: Grammar) -> None:
        self.words = WireWords(strings, grammar.names)
        self._set_predictions(grammar)
        self._set_attributes(grammar)
        self._set_values(values)
        self._read: dict[bytes, WireNames] = {}
        self._written: dict[object, WireHead] = {}  # by names and declarations

    cdef WireNames names_in(self, bytes head, Py_ssize_t offset, limits):
        """The names of a head, which begins at ``offset``; read once for all its messages."""
        names = self._read.get(head)
        if names is None or names.limits is not limits:
            names = WireNames(self.words, head, offset, limits)
            if len(head) <= _HEAD_BYTES_MAX:
                self._make_room(self._read, names.count)
                self._read[head] = names
        return names

    cdef WireHead head_of(self, stream):
        """The head of a stream; made once for streams with the same names and declarations."""
        key = (tuple(stream.names), tuple(stream.declarations))
        head = self._written.get(key)
        if head is None:
            head = WireHead(stream, self.words)
            if len(head.form) <= _HEAD_BYTES_MAX:
                self._make_room(self._written, head.count)
                self._written[key] = head
        return head

    cdef _make_room(self, dict kept, int names):
        if len(kept) >= min(_HEADS_MAX, _HEAD_NAMES_MAX // (names + 1) + 1):
            kept.clear()

    cdef int expect(self, int[::1] predicted, int[::1] set_of, int count) noexcept:
        """Begin a message of so many names with the predictions for each context and name."""
        cdef int i
        cdef int known = self.words.name_count
        for i in range(4 * (known + 1)):
            predicted[i] = self.predicted[i]
        for i in range(4 * (known + 1), 4 * (count + 1), 2):
            predicted[i] = TEXT
            predicted[i + 1] = END
        for i in range(known):
            set_of[i] = self.expected_set[i]
        for i in range(known, count):
            set_of[i] = 0
        return 0

    cdef int find_value(self, const unsigned char* data, Py_ssize_t at, Py_ssize_t size) noexcept:
        """The number of the value ``data[at:at + size]``, or -1."""
        cdef int _probe
        cdef Py_ssize_t i
        cdef int number
        cdef Py_ssize_t start
        if size > VALUE_BYTES_MAX or self.value_count == 0:
            return -1
        cdef unsigned int slot = value_hash(data, at, size) & self._value_mask
        for _probe in range(PROBES_MAX):
            number = self._value_slots[slot]
            if number < 0:
                return -1
            start = self.value_start[number]
            if self.value_start[number + 1] - start == size:
                for i in range(size):
                    if self.value_data[start + i] != data[at + i]:
                        break
                else:
                    return number
            slot = (slot + 1) & self._value_mask
        return -1

    cdef _set_predictions(self, grammar):
        predicted = array("i", [grammar.root, END, END, END])
        for first, following in zip(grammar.first, grammar.following, strict=True):
            after_text = first if first >= ELEMENT else END
            predicted.extend((first, after_text, following, following))
        self.predicted = predicted

    cdef _set_attributes(self, grammar):
        numbers: dict[tuple[int, ...], int] = {(): 0}
        expected = array("i")
        for attributes in grammar.attributes:
            expected.append(numbers.setdefault(attributes, len(numbers)))
        starts, members = array("i", [0]), array("i")
        for attributes in numbers:
            members.extend(attributes)
            starts.append(len(members))
        members.append(0)  # a view of nothing is not to be had
        expected.append(0)
        self.set_numbers = numbers
        self.set_count = len(numbers)
        self.expected_set = expected
        self.set_start, self.set_members = starts, members

    cdef _set_values(self, values):
        cdef unsigned int slot
        starts = array("i", [0, *accumulate(map(len, values))])
        joined = b"".join(values) + b"\0"
        size = 16
        while size < 2 * len(values):
            size *= 2
        slots = array("i", [-1]) * size
        for number, value in enumerate(values):
            slot = value_hash(value, 0, len(value)) & (size - 1)
            for _ in range(PROBES_MAX):
                if slots[slot] < 0:
                    slots[slot] = number
                    break
                slot = (slot + 1) & (size - 1)
        self.value_count = len(values)
        self.value_start = starts
        self._values = joined
        self.value_data = joined
        self._value_slots, self._value_mask = slots, size - 1


cpdef unsigned int value_hash(const unsigned char* data, Py_ssize_t at, Py_ssize_t size) noexcept:
    """A hash of a value's length, beginning and end; the same in every process."""
    cdef Py_ssize_t i
    cdef unsigned int factor = 16_777_619
    cdef unsigned int mask = 0xFFFFFFFF
    cdef unsigned int hashed = 2_166_136_261
    hashed = ((hashed ^ <unsigned int>(size)) * factor) & mask
    for i in range(at, at + min(size, 6)):
        hashed = ((hashed ^ data[i]) * factor) & mask
    for i in range(at + max(size - 4, 6), at + size):
        hashed = ((hashed ^ data[i]) * factor) & mask
    return hashed ^ (hashed >> 15)


# -------------------------------------------------------------------------------------------------
# WireScope: which prefix means what while a binary form is read.
#
# Bindings and prefixes are numbers of the message's WireNames.  A declaration is announced before
# the start of its element (``announce``) and in force from there (``open``) to its end (``close``).

cdef enum:
    NO_BINDING = 0
    XML_BINDING = 1
    UNRESOLVED = -1


@cython.final
cdef class WireScope:
    """One message after the other (``begin``); ``announced`` declarations wait for an element.

    ``in_force``: [prefix] the binding that it has now.
    """

    cdef WireBytes _source
    cdef WireNames _names
    cdef readonly int announced
    cdef int _declarations_max, _prefixes, undo
    cdef list _bindings
    cdef object _undo_prefixes, _undo_bindings, _undo_elements
    cdef int[::1] _undo_prefix, _undo_binding, _undo_element, in_force
    cdef long long[::1] _tags
    cdef long long _tag

    def __init__(self, source: WireBytes) -> None:
        self._source = source
        self._tag = 0
        self._prefixes = 0
        self._undo_prefixes = array("i")
        self._undo_bindings = array("i")
        self._undo_elements = array("i")
        self._grow_undo(16)
        self._grow_prefixes(8)

    cdef begin(self, WireNames names, int declarations_max):
        """``declarations_max``: of one element."""
        cdef int i
        self._names = names
        self._declarations_max = declarations_max
        if names.prefix_count > self._prefixes:
            self._grow_prefixes(names.prefix_count)
        for i in range(names.prefix_count):
            self.in_force[i] = UNRESOLVED
        self.in_force[0] = NO_BINDING
        self.in_force[1] = XML_BINDING
        self.undo = 0
        self.announced = 0

    cdef int announce(self, int binding) except -1:
        if binding >= self._names.binding_count:
            self._source.refuse("bad-structure", f"no binding {binding}")
        if binding == XML_BINDING:
            self._source.refuse("bad-declaration", "prefix xml is always declared")
        if self.announced >= self._declarations_max:
            self._source.refuse("too-many-attributes", "too many declarations on one element")
        if self.announced == 0:
            self._bindings: list[int] = []
        self._bindings.append(binding)
        self.announced += 1

    cdef Py_ssize_t open(self, int element, ColumnWriter out) except -1:
        """Declare the announced prefixes on an element; the bytes that the declarations take."""
        cdef int binding, prefix
        cdef Py_ssize_t size = 0
        self._tag += 1
        for binding in self._bindings:
            prefix = self._names.prefix[binding]
            if self._tags[prefix] == self._tag:
                self._source.refuse("bad-declaration", "a prefix declared twice on one element")
            self._tags[prefix] = self._tag
            if self.undo == len(self._undo_prefixes):
                self._grow_undo(2 * self.undo)
            self._undo_prefix[self.undo] = prefix
            self._undo_binding[self.undo] = self.in_force[prefix]
            self._undo_element[self.undo] = element
            self.undo += 1
            self.in_force[prefix] = binding
            declaration = self._names.bindings[binding]
            size += len(declaration[0].encode()) + len(declaration[1].encode())
            out.declare_on(element, declaration)
        self.announced = 0
        return size

    cdef void close(self, int element) noexcept:
        """The end of an element."""
        while self.undo > 0 and self._undo_element[self.undo - 1] == element:
            self.undo -= 1
            self.in_force[self._undo_prefix[self.undo]] = self._undo_binding[self.undo]

    cdef _grow_undo(self, int count):
        self._undo_prefixes = _longer(self._undo_prefixes, count)
        self._undo_bindings = _longer(self._undo_bindings, count)
        self._undo_elements = _longer(self._undo_elements, count)
        self._undo_prefix = self._undo_prefixes
        self._undo_binding = self._undo_bindings
        self._undo_element = self._undo_elements

    cdef _grow_prefixes(self, int count):
        self._prefixes = count
        self.in_force = array("i", bytes(4 * count))
        self._tags = array("q", bytes(8 * count))


def _longer(column: array[int], count: int) -> array[int]:
    longer = array(column.typecode, bytes(count * column.itemsize))
    longer[: len(column)] = column
    return longer


# -------------------------------------------------------------------------------------------------
# AttributeSets: the sets of attribute names that elements of one binary form have.
#
# Number 0 is no attribute; then come the dictionary's sets, then those that the message says, each
# where it is needed first.  The names of a set are checked once, whatever its elements are.

cdef enum:
    _MEMBERS_KEPT_MAX = 1 << 16


@cython.final
cdef class AttributeSets:
    """One message after the other (``begin``); ``member(i)`` for i from ``start`` to ``end``."""

    cdef WireBytes _source
    cdef WireModel _model
    cdef WireNames _names
    cdef readonly int start, end
    cdef int _size_max, _known, _own, _meanings
    cdef bint _is_own
    cdef object _members, _starts
    cdef int[::1] _member, _start
    cdef long long[::1] _tags
    cdef long long _tag

    def __init__(self, source: WireBytes) -> None:
        self._source = source
        self._tag = 0
        self._meanings = 0
        self._members = _empty(64)
        self._member = self._members
        self._starts = _empty(32)
        self._start = self._starts

    cdef begin(self, WireModel model, WireNames names, int size_max):
        """``size_max``: attributes of one element."""
        self._model = model
        self._names = names
        self._size_max = size_max
        self._known = model.set_count
        self._own = 0
        if len(self._members) > _MEMBERS_KEPT_MAX:
            self._members = _empty(64)
            self._member = self._members
        if len(self._starts) > _MEMBERS_KEPT_MAX:
            self._starts = _empty(32)
            self._start = self._starts
        if names.count > self._meanings:
            self._meanings = names.count
            self._tags = array("q", bytes(8 * names.count))

    cdef int choose(self, int number) noexcept:
        """Makes a set the present one; how many attributes it has."""
        cdef WireModel model = self._model
        cdef int own = number - self._known
        self._is_own = own >= 0
        if self._is_own:
            self.start, self.end = self._start[own], self._start[own + 1]
        else:
            self.start, self.end = model.set_start[number], model.set_start[number + 1]
        return self.end - self.start

    cdef int member(self, int i) noexcept:
        return self._member[i] if self._is_own else self._model.set_members[i]

    cdef int read(self) except -1:
        """The number of a set, from the source; a new one is read with it."""
        cdef WireBytes source = self._source
        cdef int i
        cdef int number = source.number()
        cdef int own = number - self._known
        if own < self._own:
            return number
        if own > self._own:
            source.refuse("bad-structure", f"no set of attributes {number}")
        cdef int count = source.number()
        if count > source.stop - source.at:
            source.refuse("bad-count", f"{count} attributes do not fit into the message")
        if count > self._size_max:
            source.refuse("too-many-attributes", f"{count} attributes on one element")
        cdef int start = self._start[own]
        while start + count > len(self._members):
            self._members = self._members * 2
            self._member = self._members
        if own + 2 > len(self._starts):
            self._starts = self._starts * 2
            self._start = self._starts
        self._tag += 1
        for i in range(count):
            self._member[start + i] = self._read_name()
        self._start[own + 1] = start + count
        self._own = own + 1
        return number

    cdef int _read_name(self) except -1:
        """The name of an attribute: may be one, and means something else than those before."""
        cdef WireBytes source = self._source
        cdef WireNames names = self._names
        cdef int number = source.number()
        if number >= names.count:
            source.refuse("bad-structure", f"no name {number}")
        if names.binding[number] < 0 and not names.resolve(number):
            source.refuse("undeclared-prefix", f"no prefix for the dictionary's name {number}")
        if names.is_xmlns[number]:
            source.refuse("bad-attribute", "xmlns is no attribute")
        cdef int meaning = names.meaning[number]
        if self._tags[meaning] == self._tag:
            name = names.names[number]
            source.refuse("bad-attribute", f"attribute {name} stands twice on one element")
        self._tags[meaning] = self._tag
        return number


def _empty(rows: int) -> array[int]:
    return array("i", bytes(4 * rows))


# -------------------------------------------------------------------------------------------------
# ValueWriter: the codes and the run of a column of values (the reader's side is ValueReader).
#
# Short values are looked up: among the dictionary's, then among the literals written so far in the
# same column, in a hash table that a generation number empties.

cdef enum:
    _LITERAL_BYTES_MAX = 64  # longer literals are not looked up: they hardly ever come again
    _ROWS_KEPT_MAX = 1 << 16  # scratch that is kept for the next message


@cython.final
cdef class ValueWriter:
    """One column after the other."""

    cdef long long _generation
    cdef Py_ssize_t _rows, _code
    cdef unsigned int _mask
    cdef int[::1] _literal_at, _literal_size, _slot_literal
    cdef long long[::1] _slot_generation
    cdef bytearray _code_buffer, _run_buffer
    cdef unsigned char[::1] _codes, _run

    def __init__(self) -> None:
        self._generation = 0
        self._run_buffer = bytearray(4096)
        self._run = self._run_buffer
        self._grow(256)

    cdef tuple write(self, WireModel model, ends, bytes values):
        """Codes and run; ``ends`` is an offset column."""
        cdef int* offsets = numbers_of(ends)
        cdef const unsigned char* data = values
        cdef int i
        cdef Py_ssize_t at, size, k
        cdef int found
        cdef int literals = 0
        cdef int count = len(ends) - 1
        cdef Py_ssize_t copied = 0
        if count > self._rows or self._rows > _ROWS_KEPT_MAX >= count:
            self._grow(max(count, 256))
        if len(values) > len(self._run_buffer) or len(self._run_buffer) > 16 * _ROWS_KEPT_MAX:
            self._run_buffer = bytearray(max(len(values), 4096))
            self._run = self._run_buffer
        self._generation += 1
        self._code = 0
        for i in range(count):
            at = offsets[i]
            size = offsets[i + 1] - at
            found = model.find_value(data, at, size)
            if found >= 0:
                self._put(4 * found + 3)
                continue
            if 0 < size <= _LITERAL_BYTES_MAX:
                found = self._find_literal(data, at, size, literals)
                if found >= 0:
                    self._put(4 * found + 1)
                    continue
            self._literal_at[literals] = at
            self._literal_size[literals] = size
            literals += 1
            self._put(2 * size)
            for k in range(size):
                self._run[copied + k] = data[at + k]
            copied += size
        run = values if copied == len(values) else bytes(self._run_buffer[:copied])
        cdef const unsigned char* codes = self._code_buffer
        return bytes(codes[: self._code]), run

    cdef int _find_literal(
        self, const unsigned char* data, Py_ssize_t at, Py_ssize_t size, int next_literal
    ) noexcept:
        """The number of an equal literal, or -1; then the value is entered as ``next_literal``."""
        cdef int _probe
        cdef Py_ssize_t k
        cdef int literal
        cdef unsigned int slot = value_hash(data, at, size) & self._mask
        for _probe in range(PROBES_MAX):
            if self._slot_generation[slot] != self._generation:
                self._slot_generation[slot] = self._generation
                self._slot_literal[slot] = next_literal
                return -1
            literal = self._slot_literal[slot]
            if self._literal_size[literal] == size:
                for k in range(size):
                    if data[self._literal_at[literal] + k] != data[at + k]:
                        break
                else:
                    return literal
            slot = (slot + 1) & self._mask
        return -1

    cdef void _put(self, long long number) noexcept:
        while number >= 0x80:
            self._codes[self._code] = number & 0x7F | 0x80
            self._code += 1
            number >>= 7
        self._codes[self._code] = number
        self._code += 1

    cdef _grow(self, Py_ssize_t rows):
        cdef Py_ssize_t slots = 512
        while slots < 2 * rows:
            slots *= 2
        self._rows = rows
        self._mask = slots - 1
        self._literal_at = array("i", bytes(4 * rows))
        self._literal_size = array("i", bytes(4 * rows))
        self._slot_literal = array("i", bytes(4 * slots))
        self._slot_generation = array("q", bytes(8 * slots))
        self._code_buffer = bytearray(5 * rows)
        self._codes = self._code_buffer


# -------------------------------------------------------------------------------------------------
# ValueReader: the values of a binary form, from their codes and their run of bytes.
#
# A code is a number: a literal's size, the number of a value of the dictionary, or the number of a
# literal that came before in the same run (docs/formats.md).  Where there are only literals, the
# run is the column as it stands.

cdef enum:
    _BYTES_KEPT_MAX = 1 << 20


@cython.final
cdef class ValueReader:
    """``written`` is what counts against ``expansion_max``; ``run`` where the next run begins."""

    cdef WireBytes _source
    cdef WireModel _model
    cdef readonly Py_ssize_t run
    cdef long long _written, _expansion_max
    cdef int _rows
    cdef int[::1] _literal_at, _literal_size, _value_at
    cdef bytearray _buffer
    cdef unsigned char[::1] _copy

    def __init__(self, source: WireBytes) -> None:
        self._source = source
        self._grow(256)
        self._buffer = bytearray(4096)
        self._copy = self._buffer

    cdef begin(self, WireModel model, Py_ssize_t run, long long written, long long expansion_max):
        """A new message, whose names take ``written`` bytes."""
        self._model = model
        self.run = run
        self._written = written
        self._expansion_max = min(expansion_max, NUMBER_MAX // 2)

    cdef bytes read(self, int count, int[::1] offsets):
        """``count`` values, their codes from the source's ``at`` to its ``stop``.

        Sets ``offsets[1:count + 1]`` to where each ends.
        """
        cdef WireBytes source = self._source
        cdef const unsigned char* data = source.data
        cdef int i, code, size
        cdef int literals = 0
        cdef bint copied = False
        cdef long long total = 0
        cdef long long bound = self._expansion_max - self._written
        cdef Py_ssize_t end = self.run
        if count > self._rows or self._rows > _ROWS_KEPT_MAX >= count:
            self._grow(max(count, 256))
        for i in range(count):
            if source.at < source.stop and data[source.at] < 0x80:
                code = data[source.at]
                source.at += 1
            else:
                code = source.number()
            if not code & 1:
                size = code >> 1
                if size > source.size - end:
                    source.refuse("truncated", f"a value of {size} bytes ends behind the message")
                self._literal_at[literals] = end
                self._literal_size[literals] = size
                literals += 1
                self._value_at[i] = end
                end += size
            else:
                copied = True
                size = self._refer(i, code, literals)
            total += size
            if total > bound:
                break
            offsets[i + 1] = total
        if self._written + total > self._expansion_max:
            reason = f"names and values of more than {self._expansion_max} bytes"
            source.refuse("entity-expansion", reason)
        if source.at != source.stop:
            source.refuse("trailing-bytes", "codes behind that of the last value")
        run: bytes = source.data[self.run : end]
        self._check(run, literals)
        self._written += total
        self.run = end
        return self._copied(count, offsets) if copied else run

    cdef int _refer(self, int value, int code, int literals) except -1:
        """A value that is the dictionary's or was there before; its size."""
        cdef WireModel model = self._model
        cdef int number = code >> 2
        if not code & 2:
            if number >= literals:
                self._source.refuse("bad-structure", f"no literal {number} before this value")
            self._value_at[value] = self._literal_at[number]
            return self._literal_size[number]
        if number >= model.value_count:
            self._source.refuse("bad-structure", f"the dictionary has no value {number}")
        self._value_at[value] = -1 - model.value_start[number]
        return model.value_start[number + 1] - model.value_start[number]

    cdef _check(self, bytes run, int literals):
        """Literals are UTF-8, each by itself, and have only characters that XML can carry."""
        cdef const unsigned char* data = run
        cdef Py_ssize_t i
        cdef unsigned char byte
        cdef unsigned char illegal = 0
        cdef unsigned char high = 0
        for i in range(len(run)):
            byte = data[i]
            high |= byte
            illegal |= (byte < 0x20) & (byte != 0x09) & (byte != 0x0A) & (byte != 0x0D)
        if illegal:
            self._source.refuse("bad-value", "a control character, which XML cannot carry")
        if high >= 0x80:
            self._check_characters(run, literals)

    cdef _check_characters(self, bytes run, int literals):
        cdef const unsigned char* data = run
        cdef int i
        cdef Py_ssize_t place
        if not is_utf_8(run):
            self._source.refuse("bad-value", "not UTF-8, or a character that XML cannot carry")
        for i in range(literals):
            place = self._literal_at[i] - self.run
            if place < len(run) and data[place] & 0xC0 == 0x80:
                self._source.refuse("bad-value", "a value ends inside a character")

    cdef bytes _copied(self, int count, int[::1] offsets):
        """Literals and what stands for values, end to end."""
        cdef WireModel model = self._model
        cdef int i
        cdef Py_ssize_t at
        cdef Py_ssize_t start = 0
        cdef Py_ssize_t end
        cdef Py_ssize_t total = offsets[count]
        if total > len(self._buffer) or len(self._buffer) > _BYTES_KEPT_MAX >= total:
            self._buffer = bytearray(max(total, 4096))
            self._copy = self._buffer
        for i in range(count):
            end = offsets[i + 1]
            at = self._value_at[i]
            if at >= 0:
                self._copy_bytes(start, self._source.data, at, end - start)
            else:
                self._copy_bytes(start, model.value_data, -1 - at, end - start)
            start = end
        cdef const unsigned char* copied = self._buffer
        return bytes(copied[:total])

    cdef void _copy_bytes(
        self, Py_ssize_t place, const unsigned char* source, Py_ssize_t at, Py_ssize_t size
    ) noexcept:
        if size == 0:
            return
        # PERF: a loop over bytes takes a quarter of the whole reading
        memcpy(&self._copy[place], source + at, size)

    cdef _grow(self, int rows):
        self._rows = rows
        self._literal_at = array("i", bytes(4 * rows))
        self._literal_size = array("i", bytes(4 * rows))
        self._value_at = array("i", bytes(4 * rows))


# -------------------------------------------------------------------------------------------------
# BinaryWriter: an ElementStream as a binary form (docs/formats.md); the way back of
# ``binary_reader``.
#
# Equal streams have equal bytes, in every process: names, sets of attributes and literals are
# numbered in the order of their first use, and what is expected is what the reader expects there.

cdef enum:
    _NAMES_KEPT_MAX = 1 << 14  # scratch that is kept for the next message
    _NUMBER_BYTES = 5  # the longest number


cdef list _IDLE_WRITERS = []  # as many as there were writings at the same time


def write_binary(stream: ElementStream, model: WireModel) -> bytes:
    """The form of a valid stream, from its head on."""
    cdef BinaryWriter writer = _IDLE_WRITERS.pop() if _IDLE_WRITERS else BinaryWriter()
    try:
        return writer.write(stream, model)
    finally:
        _IDLE_WRITERS.append(writer)


@cython.final
cdef class BinaryWriter:
    """One writing after the other."""

    cdef ValueWriter _values
    cdef WireHead _head, _last_head
    cdef WireModel _model, _last_model
    cdef int _name_room
    cdef Py_ssize_t _bit, _token
    cdef int[::1] _predicted, _set_of, _open_name
    cdef object _open_names
    cdef list _set_element
    cdef dict _own_sets
    cdef bytearray _token_buffer, _bit_buffer
    cdef unsigned char[::1] _tokens, _bits
    # Of the stream that is being written.
    cdef int* _element_name
    cdef int* _element_end
    cdef int* _attribute_start
    cdef int* _attribute_name
    cdef int* _declaration_element
    cdef int* _content_next
    cdef int* _content_parent
    cdef unsigned char* _content_kind
    cdef Py_ssize_t _declarations

    def __init__(self) -> None:
        self._values = ValueWriter()
        self._last_head: WireHead | None = None
        self._last_model: WireModel | None = None
        self._grow_names(64)
        self._grow_bytes(4096)
        self._open_names = array("i", bytes(4 * 32))
        self._open_name = self._open_names

    cpdef bytes write(self, object stream, WireModel model):
        """As ``write_binary``."""
        self._model = model
        self._head = self._find_head(stream)
        self._begin(stream)
        self._element_name = numbers_of(stream.element_name)
        self._element_end = numbers_of(stream.element_end)
        self._attribute_start = numbers_of(stream.attribute_start)
        self._attribute_name = numbers_of(stream.attribute_name)
        self._declaration_element = numbers_of(stream.declaration_element)
        self._declarations = len(stream.declarations)
        self._content_kind = bytes_of(stream.content_kind)
        self._content_next = numbers_of(stream.content_next)
        self._content_parent = numbers_of(stream.content_parent)
        self._write_structure(len(stream.element_name), len(stream.content_kind))
        cdef Py_ssize_t bit_bytes = (self._bit + 7) >> 3
        cdef Py_ssize_t token_bytes = self._token
        attribute_codes, attribute_run = self._values.write(
            model, stream.attribute_offset, stream.attribute_values
        )
        content_codes, content_run = self._values.write(
            model, stream.content_offset, stream.content_values
        )
        for size in (bit_bytes, token_bytes, len(attribute_codes), len(content_codes)):
            self._put(size)
        cdef const unsigned char* bits = self._bit_buffer
        cdef const unsigned char* tokens = self._token_buffer
        return b"".join(
            (
                self._head.form,
                tokens[token_bytes : self._token],
                bits[:bit_bytes],
                tokens[:token_bytes],
                attribute_codes,
                content_codes,
                attribute_run,
                content_run,
            )
        )

    cdef WireHead _find_head(self, object stream):
        """The head of the message before, where that has the same names; otherwise a new one."""
        cdef Py_ssize_t i
        names: list[QualifiedName] = stream.names
        head = self._last_head
        if (
            head is not None
            and self._last_model is self._model
            and len(head.names) == len(names)
            and head.declarations == stream.declarations
        ):
            for i in range(len(names)):
                if head.names[i] is not names[i]:
                    break
            else:
                return head
        self._last_head = self._model.head_of(stream)
        self._last_model = self._model
        return self._last_head

    cdef _begin(self, object stream):
        cdef WireModel model = self._model
        cdef int count = self._head.count
        if count > self._name_room or self._name_room > _NAMES_KEPT_MAX >= count:
            self._grow_names(count)
        model.expect(self._predicted, self._set_of, count)
        # An element is at most four events of two numbers, beside its attributes' names and its
        # declarations; a piece of content is one.  Behind them come four sizes.
        cdef Py_ssize_t elements = len(stream.element_name)
        cdef Py_ssize_t contents = len(stream.content_kind)
        cdef Py_ssize_t declarations = len(stream.declarations)
        cdef Py_ssize_t attributes = len(stream.attribute_name)
        cdef Py_ssize_t room = _NUMBER_BYTES * (
            5 * elements + attributes + contents + 2 * declarations + 12
        )
        if room > len(self._token_buffer) or len(self._token_buffer) > _BYTES_KEPT_MAX >= room:
            self._grow_bytes(room)
        self._bit = 0
        self._token = 0
        self._set_element: list[int] = []  # of the message's own sets: who had it first
        self._own_sets: dict[tuple[int, ...], int] = {}

    cdef int _write_structure(self, int elements, int contents) except -1:
        cdef int[::1] number = self._head.number
        cdef int context = 0
        cdef int depth = 0
        cdef int element = 0
        cdef int content = 0
        cdef int declaration = 0
        cdef int parent = -1
        cdef int name, kind
        while True:
            # Content first: it belongs to the innermost open element, or another one ends before.
            if (
                content < contents
                and self._content_next[content] == element
                and self._content_parent[content] == parent
            ):
                kind = self._content_kind[content] + TEXT
                self._write_event(context, kind)
                if kind == TEXT:
                    context |= WITH_TEXT
                content += 1
            elif depth > 0 and self._element_end[parent] == element:
                self._write_event(context, END)
                depth -= 1
                context = 4 * (number[self._element_name[parent]] + 1) + AFTER
                parent = self._open_name[depth - 1] if depth > 0 else -1
            elif element == elements:
                self._write_event(context, END)
                break
            else:
                name = number[self._element_name[element]]
                while (
                    declaration < self._declarations
                    and self._declaration_element[declaration] == element
                ):
                    self._write_event(context, DECLARATION)
                    self._put(self._head.declared[declaration])
                    declaration += 1
                if not self._has_expected(name, element):
                    self._write_set(context, name, element)
                self._write_event(context, name + ELEMENT)
                if depth >= len(self._open_names):
                    self._open_names = self._open_names * 2
                    self._open_name = self._open_names
                self._open_name[depth] = element
                depth += 1
                parent = element
                element += 1
                context = 4 * (name + 1)

    cdef void _write_event(self, int context, int event) noexcept:
        cdef Py_ssize_t bit = self._bit
        self._bit = bit + 1
        if bit & 7 == 0:
            self._bits[bit >> 3] = 0
        if self._predicted[context] == event:
            self._bits[bit >> 3] |= 1 << (bit & 7)
        else:
            self._put(event)
            if event >= ELEMENT or event <= TEXT:
                self._predicted[context] = event

    cdef bint _has_expected(self, int name, int element) except -1:
        """Whether an element has the attributes that are expected of its name, in that order."""
        cdef WireModel model = self._model
        cdef int[::1] number = self._head.number
        cdef int i
        cdef int first = self._attribute_start[element]
        cdef int count = self._attribute_start[element + 1] - first
        cdef int expected = self._set_of[name]
        cdef int own = expected - model.set_count
        cdef int start
        if own < 0:
            start = model.set_start[expected]
            if model.set_start[expected + 1] - start != count:
                return False
            for i in range(count):
                if model.set_members[start + i] != number[self._attribute_name[first + i]]:
                    return False
            return True
        start = self._attribute_start[self._set_element[own]]
        if self._attribute_start[self._set_element[own] + 1] - start != count:
            return False
        for i in range(count):
            if self._attribute_name[start + i] != self._attribute_name[first + i]:
                return False
        return True

    cdef int _write_set(self, int context, int name, int element) except -1:
        """The attributes of an element, which are expected from then on."""
        cdef int i
        cdef int first = self._attribute_start[element]
        cdef int end = self._attribute_start[element + 1]
        members = tuple([self._head.number[self._attribute_name[i]] for i in range(first, end)])
        known = self._model.set_numbers.get(members)
        self._write_event(context, ATTRIBUTES)
        if known is None:
            known = self._own_sets.get(members)
        if known is not None:
            self._put(known)
        else:
            known = self._model.set_count + len(self._own_sets)
            self._own_sets[members] = known
            self._set_element.append(element)
            self._put(known)
            self._put(end - first)
            for i in range(first, end):
                self._put(self._head.number[self._attribute_name[i]])
        self._set_of[name] = known

    cdef void _put(self, int number) noexcept:
        while number >= 0x80:
            self._tokens[self._token] = number & 0x7F | 0x80
            self._token += 1
            number >>= 7
        self._tokens[self._token] = number
        self._token += 1

    cdef _grow_names(self, int count):
        self._name_room = count
        self._predicted = array("i", bytes(16 * (count + 1)))
        self._set_of = array("i", bytes(4 * count))

    cdef _grow_bytes(self, Py_ssize_t size):
        self._token_buffer = bytearray(max(size, 4096))
        self._bit_buffer = bytearray(max(size, 4096) // 8)
        self._tokens, self._bits = self._token_buffer, self._bit_buffer


# -------------------------------------------------------------------------------------------------
# BinaryReader: a binary form straight into the columns of an ElementStream (docs/formats.md).
#
# Three passes, each over one run of bytes and without a Python object for an element or a value:
# structure, attribute values, content.  The head, which gives names their meaning, is the same for
# most messages of a source and is looked up (``wire_names``).
#
# Nothing is trusted: every number is held against its bound before it is used, and before anything
# grows.  Nothing is read beyond the run that it is in; a message that ends too early is refused.

cdef enum:
    _NO_SET = -1


cdef list _IDLE_READERS = []  # as many as there were readings at the same time


cpdef object read_binary(bytes form, Py_ssize_t at, WireModel model, limits):
    """The stream of the form whose head begins at ``at``; DecodeError."""
    cdef BinaryReader reader = _IDLE_READERS.pop() if _IDLE_READERS else BinaryReader()
    try:
        return reader.read(form, at, model, limits)
    finally:
        _IDLE_READERS.append(reader)


@cython.final
cdef class BinaryReader:
    """One reading after the other."""

    cdef WireBytes _source
    cdef ColumnWriter _out
    cdef ValueReader _values
    cdef AttributeSets _sets
    cdef WireScope _scope
    cdef WireModel _model
    cdef WireNames _names
    cdef object _limits
    cdef long long _message, _written, _expansion_max, _attributes_total_max
    cdef int _depth_max, _elements_max, _attributes_each_max, _names_max
    cdef Py_ssize_t _attributes_max, _contents_max
    cdef int _name_room
    cdef int[::1] _predicted, _set_of, _number_of, _open_name
    cdef long long[::1] _seen
    cdef Py_ssize_t _depth_room
    cdef list _names_used

    def __init__(self) -> None:
        self._source = WireBytes()
        self._out = ColumnWriter()
        self._values = ValueReader(self._source)
        self._sets = AttributeSets(self._source)
        self._scope = WireScope(self._source)
        self._limits: MessageLimits | None = None
        self._message = 0
        self._grow_names(64)
        self._depth_room = 0
        self._reserve_depth(32)

    cpdef object read(self, bytes form, Py_ssize_t at, WireModel model, limits):
        """As ``read_binary``."""
        cdef WireBytes source = self._source
        cdef ColumnWriter out = self._out
        if limits is not self._limits:
            self._set_limits(limits)
        source.begin(form, at)
        self._model = model
        self._read_head(limits)
        cdef Py_ssize_t bit_bytes = source.number()
        cdef Py_ssize_t token_bytes = source.number()
        cdef Py_ssize_t attribute_bytes = source.number()
        cdef Py_ssize_t content_bytes = source.number()
        cdef Py_ssize_t bits = source.at
        cdef Py_ssize_t tokens = bits + bit_bytes
        cdef Py_ssize_t attribute_codes = tokens + token_bytes
        cdef Py_ssize_t content_codes = attribute_codes + attribute_bytes
        cdef Py_ssize_t run = content_codes + content_bytes
        if run > source.size:
            source.refuse("truncated", "the message ends before its values")
        # Each has a code of a byte at least: no more of them can be meant.
        self._attributes_max = attribute_bytes
        self._contents_max = content_bytes
        self._begin()
        # Every event is a bit at least.
        cdef Py_ssize_t elements_max = min(8 * bit_bytes, self._elements_max)
        out.reserve(
            elements_max,
            min(attribute_bytes, self._attributes_total_max),
            min(content_bytes, 8 * bit_bytes),
        )
        self._reserve_depth(min(elements_max, self._depth_max))
        source.at, source.stop = tokens, attribute_codes
        self._read_structure(bits, tokens)
        self._values.begin(model, run, self._written, self._expansion_max)
        source.at, source.stop = attribute_codes, content_codes
        attribute_values = self._values.read(out.attributes, out.attribute_offset)
        source.at, source.stop = content_codes, run
        content_values = self._values.read(out.contents, out.content_offset)
        self._check_content(content_values)
        if self._values.run != source.size:
            source.at = self._values.run
            source.refuse("trailing-bytes", "the message should end here")
        return out.finish_with(self._names_used, attribute_values, content_values)

    cdef _set_limits(self, limits):
        self._limits = limits
        self._depth_max = min(limits.depth_max, NUMBER_MAX)
        self._elements_max = min(limits.elements_max, NUMBER_MAX // 2)
        self._attributes_each_max = limits.attributes_max
        self._attributes_total_max = min(limits.attributes_total_max, NUMBER_MAX // 2)
        self._names_max = limits.names_max
        self._expansion_max = min(limits.expansion_max, NUMBER_MAX // 2)

    cdef _read_head(self, limits):
        cdef WireBytes source = self._source
        cdef Py_ssize_t size = source.number()
        cdef Py_ssize_t end = source.at + size
        if end > source.size:
            source.refuse("truncated", "the message ends inside its head")
        head: bytes = source.data[source.at : end]
        self._names = self._model.names_in(head, source.at, limits)
        source.at = end

    cdef _begin(self):
        """Scratch for a message with the names of the head."""
        cdef WireModel model = self._model
        cdef int count = self._names.count
        if count == 0:
            self._source.refuse("bad-structure", "a message has a root element")
        if count > self._name_room or self._name_room > _NAMES_KEPT_MAX >= count:
            self._grow_names(count)
        model.expect(self._predicted, self._set_of, count)
        self._message += 1
        self._names_used: list[QualifiedName] = []
        self._written = 0
        self._sets.begin(model, self._names, self._attributes_each_max)
        self._scope.begin(self._names, self._attributes_each_max)
        self._out.begin(0)

    cdef int _read_structure(self, Py_ssize_t bits, Py_ssize_t stop) except -1:
        """All events, of which the bits lie from ``bits`` to ``stop``."""
        # PERF: rows are set here and not by ColumnWriter, whose calls would take as long again
        # (python -m benchmarks formats: decode_over_own_parser).
        cdef WireBytes source = self._source
        cdef ColumnWriter out = self._out
        cdef WireNames names = self._names
        cdef const unsigned char* data = source.data
        cdef Py_ssize_t bit = 8 * bits
        cdef int context = 0
        cdef int event, name
        cdef int depth = 0
        cdef int element = 0
        cdef int content = 0
        cdef int parent = -1
        cdef int attribute_set = _NO_SET
        cdef bint after_text = False
        while True:
            if bit >= 8 * stop:
                source.refuse("truncated", "the bits end before the message does")
            if (data[bit >> 3] >> (bit & 7)) & 1:
                event = self._predicted[context]
            else:
                event = source.number()
                if event - ELEMENT >= names.count:
                    source.refuse("bad-structure", f"no event {event}")
                if event >= ELEMENT or event <= TEXT:
                    self._predicted[context] = event
            bit += 1
            if event >= ELEMENT:
                name = event - ELEMENT
                if (
                    element >= self._elements_max
                    or depth >= self._depth_max
                    or (depth == 0 and element > 0)
                ):
                    self._refuse_element(element, depth)
                if attribute_set == _NO_SET:
                    attribute_set = self._set_of[name]
                else:
                    self._set_of[name] = attribute_set
                self._open_name[depth] = name
                out.element_parent[element] = parent
                out.element_depth[element] = depth
                out.element_name[element] = self._start(name, element, attribute_set)
                parent = element
                depth += 1
                element += 1
                out.attribute_start[element] = out.attributes
                attribute_set = _NO_SET
                context = 4 * (name + 1)
                after_text = False
            elif TEXT <= event <= INSTRUCTION:
                if content >= self._contents_max:
                    source.refuse("bad-count", "more content than there are values")
                if event == TEXT:
                    if after_text or depth == 0:
                        source.refuse("bad-content", "text next to text or outside the root")
                    context |= WITH_TEXT
                after_text = event == TEXT
                out.content_kind[content] = event - TEXT
                out.content_parent[content] = parent
                out.content_next[content] = element
                content += 1
            elif event == END:
                if depth == 0:
                    break
                depth -= 1
                context = 4 * (self._open_name[depth] + 1) + AFTER
                if self._scope.undo > 0:
                    self._scope.close(parent)
                out.element_end[parent] = element
                parent = out.element_parent[parent]
                after_text = False
            elif event == ATTRIBUTES:
                if attribute_set != _NO_SET:
                    source.refuse("bad-structure", "the attributes of one element twice")
                attribute_set = self._sets.read()
                continue
            else:
                self._scope.announce(source.number())
                continue
            if attribute_set != _NO_SET or self._scope.announced > 0:
                source.refuse("bad-structure", "attributes or declarations without an element")
        out.elements = element
        out.contents = content
        self._check_end(bit, stop)

    cdef int _check_end(self, Py_ssize_t bit, Py_ssize_t stop) except -1:
        cdef WireBytes source = self._source
        if self._out.elements == 0:
            source.refuse("bad-structure", "a message has a root element")
        if source.at != source.stop:
            source.refuse("trailing-bytes", "the structure should end here")
        if (bit + 7) >> 3 != stop or (bit & 7 and source.data[bit >> 3] >> (bit & 7)):
            source.at = bit >> 3
            source.refuse("trailing-bytes", "bits behind the last event")

    cdef int _start(self, int name, int element, int attribute_set) except -1:
        """The start of an element: its attributes' names; returns its own name's number."""
        cdef WireNames names = self._names
        cdef int declared = self._scope.announced
        if declared > 0:
            self._written += self._scope.open(element, self._out)
        if self._seen[name] != self._message:
            self._meet(name)
        cdef int binding = names.binding[name]
        if self._scope.in_force[names.prefix[binding]] != binding:
            self._refuse_prefix(name)
        self._written += names.size[name]
        cdef int number = self._number_of[name]
        if attribute_set > 0 or declared > 0:
            self._add_attributes(attribute_set, declared)
        if self._written > self._expansion_max:
            reason = f"names of more than {self._expansion_max} bytes"
            self._source.refuse("entity-expansion", reason)
        return number

    cdef int _add_attributes(self, int attribute_set, int declared) except -1:
        """The names of the attributes of one element; their values come later."""
        cdef ColumnWriter out = self._out
        cdef WireBytes source = self._source
        cdef WireNames names = self._names
        cdef int i, name, binding
        cdef int attribute = out.attributes
        cdef int count = self._sets.choose(attribute_set)
        cdef long long total = attribute + count
        if (
            count + declared > self._attributes_each_max
            or total + out.declarations > self._attributes_total_max
        ):
            source.refuse("too-many-attributes", f"{count} with {total} in the whole message")
        if total > self._attributes_max:
            source.refuse("bad-count", "more attributes than there are values")
        for i in range(self._sets.start, self._sets.end):
            name = self._sets.member(i)
            if self._seen[name] != self._message:
                self._meet(name)
            binding = names.binding[name]
            # The default namespace does not hold for attributes.
            if binding > XML_BINDING and (
                names.prefix[binding] == 0 or self._scope.in_force[names.prefix[binding]] != binding
            ):
                self._refuse_prefix(name)
            self._written += names.size[name]
            out.attribute_name[attribute] = self._number_of[name]
            attribute += 1
        out.attributes = attribute

    cdef int _meet(self, int name) except -1:
        """The first use of a name in this message, where names count in that order."""
        if self._names.binding[name] < 0 and not self._names.resolve(name):
            reason = f"no prefix for the dictionary's name {name}"
            self._source.refuse("undeclared-prefix", reason)
        self._seen[name] = self._message
        self._number_of[name] = len(self._names_used)
        self._names_used.append(self._names.names[name])
        if len(self._names_used) > self._names_max:
            self._source.refuse("too-many-names", f"more than {self._names_max} names")

    cdef _refuse_element(self, int element, int depth):
        if depth == 0:
            self._source.refuse("bad-structure", "a second root element")
        if depth >= self._depth_max:
            self._source.refuse("too-deep", f"more than {self._depth_max} levels")
        self._source.refuse("too-many-elements", f"more than {self._elements_max} elements")

    cdef _refuse_prefix(self, int name):
        qualified = self._names.names[name]
        self._source.refuse(
            "undeclared-prefix",
            f"prefix {qualified.prefix!r} does not mean {qualified.namespace!r} here",
        )

    cdef _check_content(self, bytes values):
        """Text is never empty; comments and instructions can be written as XML."""
        cdef ColumnWriter out = self._out
        cdef int i
        for i in range(out.contents):
            if out.content_kind[i] + TEXT == TEXT:
                if out.content_offset[i] == out.content_offset[i + 1]:
                    self._source.refuse("bad-content", "an empty text node")
                continue
            value = values[out.content_offset[i] : out.content_offset[i + 1]]
            if not _can_be_written(out.content_kind[i] + TEXT, value.decode()):
                self._source.refuse("bad-content", "not a comment or instruction of XML")

    cdef _reserve_depth(self, Py_ssize_t depth):
        if depth > self._depth_room:
            self._depth_room = depth
            self._open_name = array("i", bytes(4 * depth))

    cdef _grow_names(self, int count):
        self._name_room = count
        self._predicted = array("i", bytes(16 * (count + 1)))
        self._set_of = array("i", bytes(4 * count))
        self._number_of = array("i", bytes(4 * count))
        self._seen = array("q", bytes(8 * count))


def _can_be_written(kind: int, value: str) -> bool:
    """Whether a value, whose characters are those of XML, can be a comment or instruction."""
    if kind == COMMENT:
        return not ("--" in value or value.endswith("-") or "\r" in value)
    target, space, data = value.partition(" ")
    return is_processing_instruction(target, data) and bool(space) == bool(data)
