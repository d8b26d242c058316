"""What `bacs adapt` adapts: a saved ensemble or stream, made ready, and where the result may go."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from bacs import checkpoints
from bacs.cli.adapt import Wishes
from bacs.drivers import load, stream
from bacs.drivers.manifest import read_manifest
from bacs.engine import Place
from bacs.ensemble import Ensemble, Member
from bacs.errors import unknown_name
from bacs.files import check_writable
from bacs.methods import METHODS, Stream
from bacs.methods.settings import Settings
from bacs.preprocessing import Preprocessing
from bacs.pretrained.checkpoint import open_checkpoint


def method_for(run: Path) -> str:
    """The method if none is named: `auto`, or what a saved stream began with."""
    if run.is_file():
        return "auto"
    manifest = read_manifest(run)
    about = manifest["stream"] if manifest["kind"] == "stream" else {"watch": None}
    return "auto" if "watch" in about else about.get("start", about)["method"]


def batch_size_for(method: str, source: Ensemble | Stream) -> int:
    """Images per step if no number is given: that of a saved stream, else what suits the method."""
    known = source.batch_size if isinstance(source, Stream) else None
    return known or (64 if METHODS[method].chooses else 128)


def check_save(save: Path | None, run: Path, out: Path, *, overwrite: bool) -> None:
    """Raises if the adapted ensemble could not, or should not, go where it is to go."""
    if save is None:
        return
    if save.resolve() in (out.resolve(), *out.resolve().parents):
        raise ValueError(f"save must be another folder than that of the table, {out}, got {save}")
    check_writable("save", save)
    if not save.exists():
        return
    if save.resolve() == run.resolve():
        raise ValueError(f"save must be another folder than the one that is adapted, got {save}")
    if not (save / checkpoints.MANIFEST).exists():
        if save.is_file() or any(save.iterdir()):
            raise ValueError(f"save must be a new folder, {save} holds something else")
        return
    if not overwrite:
        raise ValueError(f"save must be a new folder, {save} exists: --overwrite replaces it")
    kind = checkpoints.read_manifest(save)["kind"]
    if kind not in ("ensemble", "stream"):
        raise ValueError(f"save must be a new folder, {save} holds a {kind}, which is not replaced")


def open_run(w: Wishes, method: str, settings: Settings) -> tuple[Ensemble | Stream, Settings]:
    """What is to be adapted: an ensemble, or online a stream that begins or goes on; and the settings to do it with."""
    size, device = w.size, None if w.engine == "ray" else w.device  # Ray: each task uses the device of its own machine
    Place(w.engine, address=w.address, device=w.device or "cpu").check()
    found = _open_weights(w) if w.run.is_file() else load(w.run, model=w.model, device=device)
    if isinstance(found, Stream):
        if w.classes:
            raise ValueError("classes must be left out for a saved stream, which has its own")
        going_on = _check_continues(found, method, settings, online=w.online, size=size)
        return going_on, going_on.settings
    members = [with_size(member, size) for member in found.members]
    if size is not None and not w.run.is_file() and all(a is b for a, b in zip(members, found.members, strict=True)):
        raise ValueError(f"size must be left out: the checkpoint says what its members take, got {size}")
    for member in members:
        member.model.to(device or "cpu")
    mask = mask_of(w.classes, found.class_names) if w.classes else found.class_mask
    ensemble = replace(found, members=members, class_mask=mask)
    if not w.online:
        return ensemble, settings
    return stream(ensemble, method, **({} if METHODS[method].chooses else settings.as_json())), settings


def _open_weights(w: Wishes) -> Ensemble:
    """One member of a weight file, which has no posterior."""
    checkpoints.check_no_part(w.run)
    if not (w.mean and w.std):
        raise ValueError(f"mean and std must say how pictures are normalised: the weight file {w.run} does not")
    preprocessing = Preprocessing(w.mean, w.std, size=w.size)
    found = open_checkpoint(w.run, model=w.model, arguments=w.model_arguments, preprocessing=preprocessing)
    print(
        f"{w.run} has no posterior, so that nothing holds its weights: only scales and shifts may adapt. "
        "bacs posterior gives it one, and makes several members of it, whose agreement tells more.",
        file=sys.stderr,
    )
    return found


def mask_of(classes: tuple[str, ...], names: Sequence[str] | None) -> torch.Tensor:
    """Which classes can occur, of names or numbers."""
    if names is None:
        raise ValueError("classes must be left out for an ensemble without class names")
    known = list(names)
    wanted = set()
    for word in classes:
        if word in known:
            wanted.add(known.index(word))
        elif word.isdecimal() and int(word) < len(known):
            wanted.add(int(word))
        else:
            raise unknown_name("classes", word, known)
    if len(wanted) < 2:
        raise ValueError(f"classes must be two or more: with {classes[0]} alone, nothing is left to predict")
    return torch.tensor([number in wanted for number in range(len(known))])


def size_warning(run: Path, ensemble: Ensemble) -> str | None:
    """What to say where a checkpoint names no size: convolutions take any, and are right at the one they learnt."""
    known = [member.preprocessing for member in ensemble.members]
    if all(fit is None or fit.size is not None for fit in known):
        return None
    return (
        f"{run} does not say which size its models take, so pictures stay at their own. If it is another than that of "
        "the training images, predictions are wrong: --size HEIGHT WIDTH"
    )


def _check_continues(
    stream: Stream, method: str, settings: Settings, *, online: bool, size: tuple[int, int] | None
) -> Stream:
    """A stream that was saved goes on as it was begun; other wishes are refused rather than dropped."""
    if not online:
        raise ValueError("online must be given for a saved stream: it goes on with the images in their order")
    if method != stream.begun_with:
        raise ValueError(f"method must be {stream.begun_with}, with which the stream began, got {method}")
    if settings not in (Settings(), stream.settings) and settings.of(METHODS[method]) != stream.settings:
        raise ValueError(f"a saved stream goes on with its own settings, leave them out: {stream.settings}")
    if size is not None:
        raise ValueError(f"size must be left out for a saved stream, got {size}")
    return stream


def with_size(member: Member, size: tuple[int, int] | None) -> Member:
    """The member with a size where its checkpoint has none; never another one than it says."""
    known = member.preprocessing
    if size is None or known is None or known.size is not None:
        return member
    return replace(member, preprocessing=replace(known, size=size))
