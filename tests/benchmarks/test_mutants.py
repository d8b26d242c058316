"""The mutants of benchmarks/mutants.py, which breaks the mathematics in one place at a time, fit the code of now."""

from pathlib import Path

import mutants

import bacs


def test_every_mutant_can_be_made_in_just_one_place():
    found = {
        mutant: (Path(bacs.__file__).parent / mutant.file).read_text().count(mutant.before)
        for mutant in mutants.MUTANTS
    }
    assert [mutant for mutant, count in found.items() if count != 1] == []
    assert len(found) == len(mutants.MUTANTS) >= 100
    assert all(mutants.tests_of(mutant) for mutant in mutants.MUTANTS)
