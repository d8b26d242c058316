"""What users see of members and ensembles."""

import pytest
import torch

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


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.arange(5), "class_mask must be one True or False per class"),
        (torch.zeros(5, dtype=torch.bool), "at least one True"),
        ([1, 0, 1, 1, 0], "class_mask must be one True or False per class"),
        ([True, False], "class_mask must have 5 entries, as class_names has, got 2"),
    ],
)
def test_a_wrong_mask_is_refused_where_it_is_given(mask, message):
    with pytest.raises(ValueError, match=message):
        bacs.Ensemble([small_member()], class_names=list("abcde"), class_mask=mask)


@pytest.mark.parametrize("wrong", [{"class_names": ["a", "b"]}, {"class_mask": [True, False]}])
def test_a_wrong_length_is_refused_where_it_is_given(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must have 5 entries, one per class, got 2"):
        bacs.Ensemble([small_member()], **wrong)


def test_one_word_is_not_five_names():
    with pytest.raises(TypeError, match="class_names must be several words, one per class, got 'abcde'"):
        bacs.Ensemble([small_member()], class_names="abcde")


def test_a_mask_may_be_a_list(images):
    mask = [True, False, True, True, False]
    p = bacs.Ensemble([small_member()], class_mask=mask).predict(images)
    assert (p[:, ~torch.tensor(mask)] == 0).all()
    torch.testing.assert_close(p.sum(dim=1), torch.ones(40))


@pytest.mark.parametrize(
    ("call", "method"),
    [
        (bacs.choose, {}),
        *((call, {"method": m}) for call in (bacs.adapt, bacs.stream, bacs.evaluate) for m in ("bn", "auto")),
    ],
)
def test_a_module_is_told_how_to_become_an_ensemble(call, method, images, labels):
    arguments = {bacs.stream: (), bacs.evaluate: (images, labels)}.get(call, (images,))
    model = small_member().model
    with pytest.raises(TypeError, match="got the module ResNet26; without a posterior it is bacs.Ensemble") as caught:
        call(model, *arguments, **method)
    made = eval(str(caught.value).split("it is ")[1], {"bacs": bacs, "model": model})
    assert bacs.adapt(made, images, "bn").predict(images).shape == (40, 5)
    with pytest.raises(TypeError, match="got str; bacs.load opens a saved one"):
        call("runs/cifar10", *arguments, **method)
