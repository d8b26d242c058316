"""What `bacs adapt` adapts: a saved ensemble or stream, made ready, and where the result may go."""

from dataclasses import replace
from pathlib import Path

from bacs import checkpoints
from bacs.control.auto import check_taken
from bacs.drivers import load, stream
from bacs.engine import Place
from bacs.ensemble import Ensemble, Member
from bacs.methods import METHODS, Stream
from bacs.methods.settings import Settings
from bacs.writable import check_writable


def method_for(run: Path) -> str:
    """What adapts if nobody says: `auto`, or what a saved stream began with."""
    manifest = checkpoints.read_manifest(run)
    about = manifest.get("stream", {}) if manifest["kind"] == "stream" else {"watch": None}
    return "auto" if "watch" in about else about.get("start", about)["method"]


def batch_size_for(method: str, source: Ensemble | Stream) -> int:
    """Images a step if nobody says: what a saved stream was cut to, else what suits the method."""
    known = source.batch_size if isinstance(source, Stream) else None
    return known or (64 if METHODS[method].chooses else 128)


def check_settings(method: str, settings: Settings) -> None:
    """Raises if something is given that `auto` chooses."""
    if METHODS[method].chooses:
        plain = Settings().as_json()
        check_taken({name: value for name, value in settings.as_json().items() if value != plain[name]})


def check_save(save: Path | None, run: Path, *, overwrite: bool) -> None:
    """Raises if the adapted ensemble could not, or should not, go where it is to go."""
    if save is None:
        return
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
        raise ValueError(f"save must be a new folder, {save} exists: overwrite replaces it")
    kind = checkpoints.read_manifest(save)["kind"]
    if kind not in ("ensemble", "stream"):
        raise ValueError(f"save must be a new folder, {save} holds a {kind}, which is not replaced")


def opened(
    run: Path,
    method: str,
    settings: Settings,
    *,
    online: bool,
    device: str | None,
    size: tuple[int, int] | None,
    model: str | None,
) -> Ensemble | Stream:
    """What is to be adapted: an ensemble, or online a stream that begins or goes on."""
    Place(device=device or "cpu").check()
    found = load(run, model=model, device=device)
    if isinstance(found, Stream):
        return _continued(found, method, settings, online=online, size=size)
    members = [with_size(member, size) for member in found.members]
    if size is not None and all(a is b for a, b in zip(members, found.members, strict=True)):
        raise ValueError(f"size must be left out: the checkpoint says what its members take, got {size}")
    for member in members:
        member.model.to(device or "cpu")
    ensemble = replace(found, members=members)
    if not online:
        return ensemble
    return stream(ensemble, method, **({} if METHODS[method].chooses else settings.as_json()))


def unknown_size(run: Path, ensemble: Ensemble) -> str | None:
    """What to say where a checkpoint names no size: convolutions take any, and are right at the one they learnt."""
    known = [member.preprocessing for member in ensemble.members]
    if all(fit is None or fit.size is not None for fit in known):
        return None
    return (
        f"{run} does not say which size its models take, so pictures stay at their own. If it is another than that of "
        "the training images, predictions are wrong: --size HEIGHT WIDTH"
    )


def _continued(
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
