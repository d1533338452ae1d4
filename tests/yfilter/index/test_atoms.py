"""AtomTable: values of every length, told apart and found again."""

from __future__ import annotations

from yfilter.index.automaton import AtomTable


def test_values_that_differ_in_one_byte_or_in_length_are_atoms_of_their_own() -> None:
    atoms = AtomTable()
    values = {bytes([97]) * length for length in range(40)}
    for length in range(1, 40):
        for place in range(length):
            values.add(b"a" * place + b"b" + b"a" * (length - place - 1))
    known = {
        (attribute, value): atoms.acquire(attribute, value)
        for attribute in (3, 4)
        for value in sorted(values)
    }
    assert len(set(known.values())) == len(known)
    for (attribute, value), atom in known.items():
        assert atoms.acquire(attribute, value) == atom
        assert atoms.value(atom) == value.decode()


def test_what_was_released_leaves_no_hole_on_the_way_of_others() -> None:
    atoms = AtomTable()
    known = {b"%d" % n: atoms.acquire(3, b"%d" % n) for n in range(1000)}
    for n in range(0, 1000, 2):
        assert atoms.release(known.pop(b"%d" % n)) == 3
    assert all(atoms.acquire(3, value) == atom for value, atom in known.items())
    assert atoms.acquire(3, b"0") not in known.values()
