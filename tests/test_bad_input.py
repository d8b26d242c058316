"""Wrong input gives one or two lines that name argument, rule and value, and changes nothing."""

import math
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import bacs
from bacs.parameters import read
from bacs.posteriors import flat, swag_diag
from small import small_member, small_model


def spoiled(images, value):
    wrong = images.clone()
    wrong[7, 0, 0, 0] = value
    return wrong


class Endless(IterableDataset):
    def __iter__(self):
        yield torch.zeros(3, 12, 12)


IMAGES = torch.zeros(40, 3, 12, 12)

BAD_IMAGES = [
    (spoiled(IMAGES, float("nan")), "images must be finite, got NaN or infinity in image 7"),
    (spoiled(IMAGES, float("inf")), "images must be finite, got NaN or infinity in image 7"),
    (
        IMAGES[:, :1],
        r"images of shape \[2, 1, 12, 12\] do not fit ResNet26: it takes 3 channels, got 1 channels in \[batch, "
        r"channels, height, width\]; tried were the first of \[40, 1, 12, 12\]",
    ),
    (IMAGES[0], r"it takes \[batch, channels, height, width\]; a single image is a batch as images\[None\]"),
    (IMAGES.int(), "pixels must be uint8, 0..255, got torch.int32: turn them into uint8 or floats first"),
    (np.zeros((40, 12, 12, 3), np.uint16), "pixels must be uint8, 0..255, got torch.uint16"),
    (IMAGES[:0], "images must hold at least one image, got shape"),
    ([], "images must hold at least one image, got an empty list"),
    (TensorDataset(IMAGES[:0]), "images must hold at least one image, got an empty TensorDataset"),
    (DataLoader(TensorDataset(IMAGES[:0])), "images must hold at least one image, got an empty DataLoader"),
    (torch.arange(40) % 5, r"images must be \[batch, ...\].*these look like labels"),
    (np.arange(40) % 5, r"images must be \[batch, ...\].*these look like labels"),
    (IMAGES > 0, "images must be floats, uint8 pixels or integer tokens, got torch.bool"),
    (np.array(["a.png", "b.png"]), "images must be floats, uint8 pixels or integer tokens, got <U5"),
    (torch.zeros(40, 12, 12, 3, dtype=torch.uint8), "images are uint8, but the member has no preprocessing"),
    ([np.zeros((3, 12, 12)), np.full((3, 12, 12), np.nan)], "images must be finite"),
]


@pytest.mark.parametrize(("images", "message"), BAD_IMAGES)
@pytest.mark.parametrize("method", ["vanilla", "bacs"])
def test_bad_images_are_named(ensemble, images, message, method):
    before = [read(member.model) for member in ensemble.members]
    for call in (lambda: bacs.adapt(ensemble, images, method), lambda: ensemble.predict(images)):
        with pytest.raises(ValueError, match=message) as raised:
            call()
        assert len(str(raised.value).splitlines()) <= 2
    after = [read(member.model) for member in ensemble.members]
    assert all(torch.equal(a[n], b[n]) for a, b in zip(before, after, strict=True) for n in a)


@pytest.mark.parametrize("wrong", ["folder/of/images", {"images": IMAGES}, None, 3, Endless()])
def test_what_cannot_be_images_is_named(ensemble, wrong):
    with pytest.raises(
        TypeError, match="images must be a tensor, a NumPy array, a Dataset with a length or a DataLoader"
    ):
        bacs.adapt(ensemble, wrong, "bacs")


BAD_ARGUMENTS = [
    ({"method": "bax"}, r"method must be one of .*; got 'bax' \(did you mean 'bacs'\?\)"),
    ({"method": "TENT"}, r"method must be one of vanilla, bn, tent.*got 'TENT' \(did you mean 'tent'\?\)"),
    ({"posterior_weight": -1}, "posterior_weight must be a finite number >= 0, got -1"),
    ({"posterior_weight": float("nan")}, "posterior_weight must be a finite number >= 0, got nan"),
    ({"learning_rate": -0.1}, "learning_rate must be a finite number >= 0, got -0.1"),
    ({"learning_rate": "fast"}, "learning_rate must be a finite number >= 0, got 'fast'"),
    ({"momentum": "high"}, "momentum must be at least 0 and below 1, got 'high'"),
    ({"min_variance": "small"}, "min_variance must be > 0 and finite, got 'small'"),
    ({"momentum": 1.0}, "momentum must be at least 0 and below 1, got 1.0"),
    ({"min_variance": 0.0}, "min_variance must be > 0 and finite, got 0.0"),
    ({"optimizer": "sgdd"}, r"optimizer must be one of sgd, adam; got 'sgdd' \(did you mean 'sgd'\?\)"),
    ({"posterior_step": "implicit"}, "posterior_step must be one of proximal, gradient; got 'implicit'"),
    ({"epochs": -1}, "epochs must be a finite number >= 0, got -1"),
    ({"epochs": math.inf}, "epochs must be a finite number >= 0, got inf"),
    ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
    ({"batch_size": 1.5}, "batch_size must be a whole number, got 1.5"),
    ({"batch_size": None}, "batch_size must be a whole number, got None"),
    ({"seed": None}, "seed must be a whole number from 0 to 4294967295, got None"),
    ({"seed": 10**30}, "seed must be a whole number from 0 to 4294967295, got 1000"),
    ({"seed": -1}, "seed must be a whole number from 0"),
    ({"device": "gpu"}, "device must be cpu or cuda, got 'gpu'"),
    ({"class_mask": "cat"}, "class_mask must be one True or False per class, at least one True, got 'cat'"),
    ({"statistics": "test"}, "statistics must be one of source, running, accumulated; got 'test'"),
    ({"batch_weight": 1.5}, "batch_weight must be a number from 0 .* to 1 .*, got 1.5"),
    ({"batch_weight": -0.1}, "batch_weight must be a number from 0"),
    ({"batch_weight": float("nan")}, "batch_weight must be a number from 0"),
    ({"objective_temperature": 0}, "objective_temperature must be a finite number > 0, got 0"),
    ({"temperature": 0.0}, "temperature must be a finite number > 0, or 'agreement', got 0.0"),
    ({"temperature": math.inf}, "temperature must be a finite number > 0, or 'agreement', got inf"),
    ({"temperature": "agreed"}, "temperature must be a finite number > 0, or 'agreement', got 'agreed'"),
    ({"objective": "entropi"}, r"objective must be one of entropy, .*; got 'entropi' \(did you mean 'entropy'\?\)"),
    ({"objective": "entropy + -1 * consistency"}, "objective must be one of entropy"),
    ({"objective": "1.2.3 * entropy"}, "objective must have numbers as weights, got '1.2.3 [*] entropy'"),
    ({"view": "mirror"}, r"view must be one of mirrored, shifted; got 'mirror' \(did you mean 'mirrored'\?\)"),
    ({"class_mask": torch.ones(3, dtype=torch.bool)}, "class_mask must have 5 entries, one per class, got 3"),
    (
        {"class_mask": torch.zeros(5, dtype=torch.bool)},
        "class_mask must be one True or False per class, at least one True",
    ),
    ({"class_mask": torch.arange(5)}, "class_mask must be one True or False per class"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_ARGUMENTS)
def test_bad_arguments_are_named(ensemble, images, arguments, message):
    with pytest.raises(ValueError, match=message) as raised:
        bacs.adapt(ensemble, images, **{"method": "bacs"} | arguments)
    assert len(str(raised.value).splitlines()) <= 2


@pytest.mark.parametrize(
    ("arguments", "message"), [case for case in BAD_ARGUMENTS if set(case[0]) <= {"seed", "device"}]
)
def test_streams_name_them_too(ensemble, arguments, message):
    for method in ("bacs", "auto"):
        with pytest.raises(ValueError, match=message):
            bacs.stream(ensemble, method, **arguments)


def test_an_unknown_argument_is_not_one_that_auto_chooses(ensemble, images):
    with pytest.raises(
        TypeError, match="got an unexpected keyword argument 'lr'; method 'auto' takes epochs, batch_size"
    ):
        bacs.adapt(ensemble, images, "auto", lr=0.1)
    with pytest.raises(TypeError, match=r"evaluate\(\) got an unexpected keyword argument 'lr'"):
        bacs.evaluate(ensemble, images, torch.arange(40) % 5, "bacs", lr=0.1)


@pytest.mark.parametrize("wrong", ["x", None, [IMAGES[0], IMAGES[1]], (IMAGES, torch.arange(40))])
def test_what_cannot_be_a_batch_is_named(ensemble, wrong):
    for method in ("bn", "auto"):
        with pytest.raises(TypeError, match="a batch must be a tensor or an array of images, got"):
            bacs.stream(ensemble, method).step(wrong)


def test_paths_and_pictures_are_pointed_to_who_reads_them(ensemble, tmp_path):
    for wrong in ("photos", tmp_path, ["photos/1.png"]):
        with pytest.raises(TypeError, match="bacs.data.pictures reads files"):
            bacs.adapt(ensemble, wrong, "bacs")
    for nothing in ([], None):
        with pytest.raises(ValueError, match="source must be a folder, a glob, a picture or an array file, got"):
            bacs.data.pictures(nothing)
    with pytest.raises(ValueError, match="limit must be at least 1, got 0"):
        bacs.data.pictures("photos", limit=0)


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (torch.arange(39) % 5, ValueError, "labels must be one per image: 40 images, got 39 labels"),
        (torch.arange(40), ValueError, r"labels must be 0..4, got 0..39"),
        (torch.zeros(40), ValueError, "labels must be class numbers, one per image, got float32"),
        (torch.zeros(40, 5, dtype=torch.int64), ValueError, r"one per image, got int64 of shape \[40, 5\]"),
        (None, TypeError, "labels must be class numbers, one per image, got NoneType"),
    ],
)
def test_wrong_labels_are_said_before_any_work(ensemble, images, monkeypatch, labels, error, message):
    monkeypatch.setattr(import_module("bacs.drivers.evaluate"), "member_probabilities", None)  # nothing is adapted
    with pytest.raises(error, match=message):
        bacs.evaluate(ensemble, images, labels, "bacs")


def test_wrong_labels_do_not_calibrate(ensemble, images):
    with pytest.raises(ValueError, match=r"labels must be whole numbers 0..4, got 0..39"):
        bacs.calibrate(ensemble, images, torch.arange(40))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epochs": -1}, "epochs must be a finite number >= 0, got -1"),
        ({"probe": "many"}, "probe must be a whole number, got 'many'"),
        ({"seed": 1.5}, "seed must be a whole number"),
    ],
)
def test_choose_names_them_too(ensemble, images, arguments, message):
    with pytest.raises(ValueError, match=message):
        bacs.choose(ensemble, images, **arguments)


def test_agreement_is_of_members_and_not_of_their_mean(ensemble, images):
    rows = ensemble.predict_members(images)
    assert 0 <= bacs.agreement.pairwise(rows) <= 1
    with pytest.raises(ValueError, match=r"must be \[members, batch, classes\].* got \[40, 5\]"):
        bacs.agreement.pairwise(ensemble.predict(images))


def test_a_table_asks_for_what_can_be_before_it_predicts(ensemble, images, monkeypatch):
    monkeypatch.setattr(bacs.Ensemble, "predictive", None)
    for wrong in ({"coverage": 2}, {"accuracy": 1.5}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be above 0"):
            bacs.predict_table(ensemble, images, **wrong)


def test_members_of_different_class_counts_are_refused(images):
    ensemble = bacs.Ensemble([small_member(), small_member(classes=7)])
    for call in (lambda: bacs.adapt(ensemble, images, "bacs"), lambda: bacs.stream(ensemble, "bacs").step(images)):
        with pytest.raises(ValueError, match="member 0 has 5 classes, member 1 has 7"):
            call()


def test_a_posterior_of_another_model_is_refused():
    other = swag_diag.init(read(small_model(width=8)))
    with pytest.raises(ValueError, match="posterior does not belong to this model: 'conv.weight' has shape"):
        bacs.Member(small_model(), other)
    with pytest.raises(ValueError, match="posterior does not belong to this model: it lacks parameter 'conv.weight'"):
        bacs.Member(small_model(), flat.init({}))


@pytest.mark.parametrize("scale", [0, -2.0, 1e31, 1e-31, float("nan"), float("inf"), True, "wide", None])
def test_a_posterior_scale_that_is_none_is_refused(scale):
    with pytest.raises(ValueError, match=r"posterior_scale must be a number from 1e-30 to 1e30, got "):
        replace(small_member(), posterior_scale=scale)


def test_an_ensemble_needs_members():
    with pytest.raises(ValueError, match="members must hold at least one bacs.Member"):
        bacs.Ensemble([])
    with pytest.raises(TypeError, match=r"members must be bacs.Member\(model, posterior\), got ResNet26"):
        bacs.Ensemble([small_model()])
    for one in (small_member(), None):
        with pytest.raises(TypeError, match="members must be a list of bacs.Member, got one"):
            bacs.Ensemble(one)
    with pytest.raises(TypeError, match="class_names must be several words, one per class, got 5"):
        bacs.Ensemble([small_member()], class_names=5)
    with pytest.raises(TypeError, match=r"preprocessing must be bacs.Preprocessing\(mean, std, size\), got 'imagenet'"):
        bacs.Member(small_model(), flat.init(read(small_model())), "imagenet")
    with pytest.raises(TypeError, match="mean must be numbers, one per channel, such as .* got 0.5"):
        bacs.Preprocessing(0.5, 0.25)
    with pytest.raises(TypeError, match="model must be a torch.nn.Module, got str"):
        bacs.Member("resnet26", None)
    with pytest.raises(TypeError, match=r"posterior must be a state of flat, swag_diag, swag_low_rank"):
        bacs.Member(small_model(), None)


def test_a_posterior_of_one_iterate_is_refused_before_any_work(images):
    model = small_model()
    state = swag_diag.update(swag_diag.init(read(model)), read(model))
    ensemble = bacs.Ensemble([bacs.Member(model, state)])
    with pytest.raises(ValueError, match="at least 2 iterates for a variance, got 1"):
        bacs.adapt(ensemble, images, "bacs")
    assert bacs.adapt(ensemble, images, "tent").predict(images).shape == (40, 5)


def test_a_bad_batch_leaves_the_stream_as_it_was(ensemble, images):
    stream, twin = bacs.stream(ensemble, "bacs", learning_rate=0.1), bacs.stream(ensemble, "bacs", learning_rate=0.1)
    stream.step(images)
    twin.step(images)
    for wrong in (spoiled(images, float("nan")), images[:, :2], images[:0], torch.arange(4)):
        with pytest.raises(ValueError):
            stream.step(wrong)
    assert torch.equal(stream.step(images), twin.step(images))
    assert stream.steps == 2


def test_a_shuffling_loader_cannot_be_predicted(ensemble, images):
    loader = DataLoader(TensorDataset(images), batch_size=8, shuffle=True)
    adapted = bacs.adapt(ensemble, loader, "tent")
    with pytest.raises(ValueError, match="predict needs a DataLoader with shuffle=False"):
        adapted.predict(loader)


def test_class_names_must_be_one_a_class(images):
    model = small_model()
    del model._bacs_architecture  # of a model that bacs did not build, it is known when it is run
    ensemble = bacs.Ensemble([bacs.Member(model, flat.init(read(model)))], class_names=["cat", "dog"])
    with pytest.raises(ValueError, match="class_names must have 5 entries, one per class, got 2"):
        bacs.adapt(ensemble, images, "bacs")


def test_read_only_arrays_are_read_without_a_copy_or_a_warning(ensemble, images):
    array = images.numpy().copy()
    array.flags.writeable = False
    torch.testing.assert_close(ensemble.predict(array), ensemble.predict(images))


def test_an_online_evaluation_has_no_epochs(ensemble, images, labels):
    for wrong in ({"epochs": 2}, {"predict_batch_size": 8}):
        with pytest.raises(ValueError, match="belongs to protocol='offline'"):
            bacs.evaluate(ensemble, images, labels, "tent", protocol="online", **wrong)
    with pytest.raises(
        ValueError, match=r"protocol must be one of offline, online; got 'onlin' \(did you mean 'online'"
    ):
        bacs.evaluate(ensemble, images, labels, "bacs", protocol="onlin")
    assert bacs.evaluate(ensemble, images, labels, "tent", protocol="online", seed=3).ensemble["nll"] > 0
