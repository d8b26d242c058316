"""What users see of members and ensembles."""

import bacs
from small import small_member


def test_an_ensemble_in_a_terminal_is_one_line(ensemble, images):
    assert repr(ensemble) == (
        "Ensemble(3 x Member(ResNet26 with 5,129 parameters, posterior swag_diag), source statistics)"
    )
    adapted = bacs.adapt(ensemble, images, "tent")
    assert repr(adapted).endswith("batch statistics, adapted by tent)")


def test_members_of_an_ensemble_cannot_be_swapped_from_outside(ensemble):
    assert isinstance(ensemble.members, tuple)
    members = [small_member()]
    held = bacs.Ensemble(members)
    members.append(small_member(1))
    assert len(held) == 1


def test_ensembles_are_told_apart_by_identity(ensemble):
    assert ensemble == ensemble
    assert ensemble != bacs.Ensemble(ensemble.members)
    assert len({ensemble, ensemble}) == 1
