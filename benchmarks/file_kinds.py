"""Every kind of file that bacs reads: a small good one, how it is damaged, and what is made of it when it is read."""

import bz2
import csv
import functools
import gzip
import hashlib
import io
import json
import math
import pickle
import shutil
import struct
import tarfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from file_mutations import damage_bytes, damage_json, damage_text, damage_value, damage_word
from PIL import Image
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

import bacs
from bacs import checkpoints, data, toml
from bacs.benchmark import plan, store
from bacs.benchmark import recipe as sweep_recipe
from bacs.benchmark import tune as tune_recipe
from bacs.benchmark.cell import Cell
from bacs.benchmark.run_checksum import identify_run
from bacs.cli.info import describe_run
from bacs.data.download import unpack
from bacs.errors import BacsError
from bacs.files import SEAL, seal
from bacs.parameters import read as read_parameters
from bacs.posteriors import fisher_diag, flat, swag_diag, swag_low_rank
from bacs.predictions.labels import read_truth
from bacs.pretrained.weights import open_weights
from bacs.report.comparison import comparisons
from bacs.report.contents import chapter
from bacs.report.page import facts
from bacs.report.records import read as read_sweep
from bacs.serve.state import State
from bacs.training import loop, run_folder, settings
from bacs.training import recipe as train_recipe

CLASSES = 3
IMAGES = torch.randn(8, 1, 8, 8, generator=torch.Generator().manual_seed(0))
PICTURES = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)


class Kind(NamedTuple):
    name: str
    damage: "callable"  # (random numbers) -> {file: its damaged bytes}
    read: "callable"  # () -> what it means, to be compared; raises if it is refused
    is_sealed: bool = False  # whether any change of meaning can be seen


def kinds(folder, group=None):
    """All kinds, or those of one group, with good files of each below `folder`."""
    found = []
    for maker in GROUPS if group is None else GROUPS[group : group + 1]:
        place = Path(folder) / maker.__name__
        place.mkdir(parents=True)
        found += maker(place)
    assert len({kind.name for kind in found}) == len(found)
    return found


def sum_of(*parts):
    """A checksum of arrays, tensors and whatever has a repr."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, torch.Tensor):
            part = part.detach().double().numpy()
        total.update(part.tobytes() + str(part.shape).encode() if isinstance(part, np.ndarray) else repr(part).encode())
    return total.hexdigest()


def one_file(name, file, damage, read, *, is_sealed=False):
    """A kind of one file, whose good bytes are there now."""
    good = Path(file).read_bytes()
    return Kind(name, lambda rng: {Path(file): damage(good, rng)}, read, is_sealed)


def damage_manifest(data, rng):
    """A manifest changed by someone who knows how to seal it again."""
    table = json.loads(data)
    table.pop(SEAL, None)
    for _ in range(rng.randint(1, 2)):
        table = damage_value(table, rng)
    return json.dumps(seal(table) if isinstance(table, dict) else table).encode()


def damage_old_manifest(data, rng):
    table = json.loads(data)
    table.pop(SEAL, None)
    return json.dumps(damage_value(table | {"format": 1}, rng)).encode()


def damage_tensors(place, name, rng):
    """One group of tensors changed by someone who knows all sums: renamed, lost, of another shape, type or value."""
    manifest = json.loads((place / "bacs.json").read_text())
    entry = manifest["files"][name]
    tensors = load_tensors((place / entry["file"]).read_bytes())
    key = rng.choice(sorted(tensors))
    tensor, fault = tensors.pop(key), rng.randrange(6)
    if fault == 0:
        tensors[damage_word(key, rng)] = tensor
    elif fault == 1:
        tensors[key] = rng.choice((tensor.flatten(), tensor[None], tensor.new_zeros(0), tensor.new_zeros(())))
    elif fault == 2:
        types = torch.int64, torch.int8, torch.bool, torch.float16, torch.float64, torch.bfloat16, torch.float8_e4m3fn
        tensors[key] = tensor.to(rng.choice(types))
    elif fault == 3:
        tensors[key] = torch.full_like(tensor, rng.choice((0, 1, -1, 100)))
    elif fault == 4 and tensor.is_floating_point():
        tensors[key] = torch.full_like(tensor, rng.choice((math.nan, math.inf, 1e30)))
    data = save_tensors({each: value.contiguous() for each, value in tensors.items()})
    entry |= {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    manifest.pop(SEAL)
    return {place / entry["file"]: data, place / "bacs.json": json.dumps(seal(manifest)).encode()}


def iterates(model, count=4):
    generator = torch.Generator().manual_seed(0)
    for _ in range(count):
        params = read_parameters(model)
        yield {name: p + 1e-3 * torch.randn(p.shape, generator=generator) for name, p in params.items()}


def member(module):
    model = bacs.models.build("resnet26", width=2, blocks=1, classes=CLASSES, channels=1).eval()
    posterior = module.init(read_parameters(model))
    for params in iterates(model):
        squares = {name: p.square() for name, p in params.items()}
        posterior = module.update(posterior, squares if module is fisher_diag else params)
    scale = 50.0 if module is fisher_diag else 1.0
    return bacs.Member(model, posterior, bacs.Preprocessing((0.5,), (0.25,), size=(8, 8)), posterior_scale=scale)


def ensemble(modules=(swag_diag, swag_low_rank, fisher_diag, flat)):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return bacs.Ensemble([member(module) for module in modules], class_names=["cat", "dog", "owl"])


def meaning_of(found):
    """All that an ensemble does follows from this."""
    parts = [found.class_names, found.class_mask, found.statistics, found.temperature, found.reference]
    parts.append(json.dumps(found.adaptation, sort_keys=True))
    for each in found.members:
        parts += [each.preprocessing, each.architecture, each.posterior_scale, *each.model.state_dict().values()]
        for value in each.posterior:
            parts += list(value.values()) if isinstance(value, dict) else [value]
    return sum_of(*parts)


def use(found):
    """Predicts and adapts: what was let in must not fail later for a reason that the file is to blame for."""
    try:
        bacs.adapt(found, IMAGES, "bacs", batch_size=4).predict(IMAGES)
    except ValueError:  # such as a learning rate that is no number: a choice, and said as one
        return "unusable"
    return "used"


def of_ensembles(place):
    run = place / "run"
    with torch.random.fork_rng():
        made = bacs.adapt(ensemble(), IMAGES, "bacs", class_mask=torch.tensor([True, True, True]))
    made.save(run)
    weights = next(run.glob("member-0-*"))
    groups = sorted(json.loads((run / "bacs.json").read_text())["files"])

    def load():
        return meaning_of(bacs.load(run))

    def load_and_use():
        return use(bacs.load(run))

    manifest = run / "bacs.json"
    return [
        one_file("manifest", manifest, damage_json, load, is_sealed=True),
        one_file("manifest, bytes", manifest, damage_bytes, load, is_sealed=True),
        one_file("manifest, sealed anew", manifest, damage_manifest, load_and_use),
        one_file("manifest of 0.1", manifest, damage_old_manifest, load_and_use),
        one_file(
            "manifest for bacs info", manifest, damage_manifest, lambda: repr((describe_run(run), identify_run(run)))
        ),
        one_file("member's tensors", weights, damage_bytes, load, is_sealed=True),
        Kind("member's tensors, summed anew", lambda rng: damage_tensors(run, rng.choice(groups), rng), load_and_use),
    ]


def of_streams(place):
    found = []
    for name, method, how in (
        ("stream", "tent", {"optimizer": "adam", "temperature": "agreement"}),
        ("stream under auto", "auto", {}),
    ):
        run = place / name.replace(" ", "-")
        stream = bacs.stream(ensemble((swag_diag, swag_diag)), method, **how)
        for _ in range(2):
            stream.step(IMAGES)
        stream.change(reason="to have a history", **({} if method == "auto" else {"learning_rate": 0.01}))
        stream.save(run)
        groups = sorted(json.loads((run / "bacs.json").read_text())["files"])

        def load(run=run):
            again = bacs.load(run)
            parts = [again.method_name, again.settings, again.steps, again.seed, again.batch_size, again.temperature]
            parts += [again.history, again.observed]
            return sum_of(meaning_of(again.source), *parts, *(p for m in again.members for p in m.model.parameters()))

        def load_and_use(run=run):
            again = bacs.load(run)
            try:
                again.step(IMAGES)
            except ValueError:
                return "unusable"
            return "used"

        def damage(rng, run=run, groups=groups):
            return damage_tensors(run, rng.choice(groups), rng)

        manifest = run / "bacs.json"
        found += [
            one_file(f"{name}'s manifest", manifest, damage_json, load, is_sealed=True),
            one_file(f"{name}'s manifest, sealed anew", manifest, damage_manifest, load_and_use),
            Kind(f"{name}'s tensors, summed anew", damage, load_and_use),
        ]
    beside = run / "serve.json"
    beside.write_text(json.dumps({"frozen": True}))
    found.append(one_file("state of bacs serve", beside, damage_json, lambda: State(run, save_every=1).read()[1]))
    return found


def of_runs(place):
    run = place / "run"
    plan_of_run = train_recipe.read(toml.shipped_recipes()["cifar10-small"])
    run_folder.open_run(run, plan_of_run)
    made = ensemble((swag_diag,))
    log = loop.EpochLog(1, 0.1, 1.0, 0.5, 1.0, 100.0, 0)._asdict()
    about = {"member": 0, "recipe": plan_of_run.as_json(), "scores": {"mean": {"accuracy": 0.5}}, "log": [log]}
    checkpoints.write(run / "member-0", made.describe() | {"training": about}, made.tensors())

    def load():
        run_folder.open_run(run, plan_of_run)
        return meaning_of(bacs.load(run))

    def about_member():
        return repr(run_folder.read_about(run, 0))

    unfinished = place / "training"
    how = settings.TrainingSettings(epochs=4)

    def start():
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return loop.start(bacs.models.build("resnet26", width=2, blocks=1, classes=CLASSES, channels=1), how)

    current = start()
    for params in iterates(current.model):
        current.posterior = swag_diag.update(current.posterior, params)
    for p in current.model.parameters():
        current.optimizer.state[p]["momentum_buffer"] = torch.ones_like(p)
    run_folder.save_state(unfinished, current, [log])

    def resume():
        again = start()
        lines = run_folder.load_state(unfinished, again)
        return sum_of(lines, again.epoch, *again.model.parameters(), *again.posterior.mean.values())

    return [
        one_file("run's manifest", run / "bacs.json", damage_json, load, is_sealed=True),
        one_file("run's manifest, sealed anew", run / "bacs.json", damage_manifest, load),
        one_file("run's member", run / "member-0" / "bacs.json", damage_manifest, about_member),
        one_file("training checkpoint", unfinished / "bacs.json", damage_json, resume, is_sealed=True),
        one_file("training checkpoint, sealed anew", unfinished / "bacs.json", damage_manifest, resume),
        Kind("training checkpoint's tensors", lambda rng: damage_tensors(unfinished, "state", rng), resume),
    ]


def record_of(cell):
    scores = {"accuracy": 0.5, "nll": 1.0, "brier": 0.5, "ece": 0.1}
    curves = {
        "reliability": {"confidence": [0.5, 0.9], "accuracy": [0.4, 0.8]},
        "risk_coverage": {"coverage": [0.5, 1.0], "risk": [0.1, 0.5]},
    }
    streamed = {}
    if cell.sequence:
        window = {"first": 0, "images": 4, "shift": cell.sequence[0], "single": scores, "ensemble": scores}
        streamed = {"windows": [window]}
    return (
        cell.identity()
        | {"versions": {"bacs": "0.2.0"}, "run": {"sha256": "a" * 64, "members": 2, "name": "tiny"}, "images": 4}
        | {"members": [scores, scores], "single": scores, "ensemble": scores, "class_names": ["a", "b"]}
        | {"class_accuracy": [0.5, None], "seconds": {"total": 1.0}, "images_per_second": 4.0, "error": None}
        | curves
        | streamed
    )


def of_sweeps(place):
    out = place / "sweep"
    recipe = sweep_recipe.parse(
        {"data": "cifar10-c", "corruptions": ["fog", "snow"], "methods": ["bn", "bacs"], "limit": 4}
        | {"protocols": ["offline", "continual"], "window": 4}
    )
    about = {"kind": "sweep", "recipe": json.loads(json.dumps(recipe.as_json()))}
    about["run"] = {"sha256": "a" * 64, "members": 2, "name": "tiny"}
    store.begin(out, about)
    cells: list[Cell] = plan(recipe)
    for cell in cells:
        store.write(out, record_of(cell))

    def read(check=True):
        sweep = read_sweep(out)
        chapters = [chapter(comparison) for comparison in comparisons(sweep.records)]
        tables = [table for each in chapters for table in (*each.tables, *each.numbers)]
        done = store.check(out, about, cells) if check else []
        return sum_of(facts(sweep), tables, sweep.missing, done, [store.is_finished(out, cell) for cell in cells])

    files = [store.record_file(out, cell.id) for cell in (cells[0], cells[1], cells[-1])]
    sealed_kinds = [
        one_file(f"record {number}", file, damage_json, read, is_sealed=True) for number, file in enumerate(files)
    ]
    return [
        *sealed_kinds,
        one_file("record, sealed anew", files[1], damage_manifest, read),
        one_file("record of a stream, sealed anew", files[2], damage_manifest, read),
        one_file("sweep.json", out / store.MANIFEST, damage_json, read, is_sealed=True),
        one_file("sweep.json, sealed anew", out / store.MANIFEST, damage_manifest, read),
    ]


def of_recipes(place):
    readers = {
        "train": lambda file: repr(train_recipe.read(file)),
        "sweep": lambda file: repr(plan(sweep_recipe.read(file))),
        "tune": lambda file: repr(tune_recipe.cells(tune_recipe.read(file))),
    }
    found = []
    for name, source in toml.shipped_recipes().items():
        verb = toml.verb_of(toml.read(source))
        file = place / f"{name}.toml"
        shutil.copy(source, file)
        found.append(one_file(f"recipe {name}", file, damage_text, functools.partial(readers[verb], file)))
    chosen = place / "chosen.toml"
    chosen.write_text("[method.bacs]\nlearning_rate = 0.01\nepochs = [1]\n")
    sweep = next(file for file in toml.shipped_recipes().values() if toml.verb_of(toml.read(file)) == "sweep")

    def read_chosen():
        return repr(plan(sweep_recipe.read(sweep, settings=chosen)))

    return [*found, one_file("settings", chosen, damage_text, read_chosen)]


def read_set(name, **options):
    """A data set as it is trained on: all pixels, all labels."""
    found = data.load(name, **options)
    return sum_of(np.asarray(found.images[:]), found.labels, found.classes)


def of_arrays(place):
    labels = np.arange(6) % CLASSES
    np.save(place / "a.npy", PICTURES)
    np.save(place / "a_labels.npy", labels)
    np.savez(place / "plain.npz", images=PICTURES, labels=labels)
    np.savez_compressed(place / "packed.npz", x_test=PICTURES, y_test=labels)
    save_arrays({"images": PICTURES, "labels": labels}, place / "a.safetensors")
    model = bacs.models.build("cifar_resnet", depth=8, width=2, classes=CLASSES)
    weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    torch.save({"state_dict": weights}, place / "w.pt")
    np.savez(place / "w.npz", **{name: tensor.numpy() for name, tensor in weights.items()})
    (place / "w.safetensors").write_bytes(save_tensors(weights))

    def read_weights(file):
        built = bacs.models.build("cifar_resnet", depth=8, width=2, classes=CLASSES)
        return sum_of(*open_weights(file, built).model.state_dict().values())

    names = ("a.npy", "a_labels.npy", "plain.npz", "packed.npz", "a.safetensors")
    found = [
        one_file(
            f"array {name}",
            place / name,
            damage_bytes,
            functools.partial(read_set, place / name.replace("_labels", "")),
        )
        for name in names
    ]
    return found + [
        one_file(f"weights {name}", place / name, damage_bytes, functools.partial(read_weights, place / name))
        for name in ("w.pt", "w.npz", "w.safetensors")
    ]


def idx_bytes(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def of_sets(place):
    from scipy.io import savemat

    labels = np.arange(6) % CLASSES
    grey, at_32 = PICTURES[..., 0], np.repeat(np.repeat(PICTURES, 4, axis=1), 4, axis=2)
    files = {}

    def put(name, content, read, *, label):
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        files[label] = file, read

    for folder, ending in (("fashion-mnist", ""), ("mnist", ".gz")):
        read = functools.partial(read_set, folder, data_dir=place)
        for part, array in (("images-idx3", grey), ("labels-idx1", labels.astype(np.uint8))):
            content = idx_bytes(array)
            put(
                f"{folder}/t10k-{part}-ubyte{ending}",
                gzip.compress(content) if ending else content,
                read,
                label=f"idx {part}{ending}",
            )
    pixels = " ".join(f"{place}:{place / 256:.4f}" for place in range(1, 257))
    lines = "".join(f"{label + 1} {pixels}\n" for label in labels)
    read = functools.partial(read_set, "usps", data_dir=place)
    put("usps/usps.t.bz2", bz2.compress(lines.encode()), read, label="USPS")
    for packed in (False, True):
        content = io.BytesIO()
        savemat(
            content,
            {"X": at_32.transpose(1, 2, 3, 0), "y": (labels[:, None] + 1).astype(np.uint8)},
            do_compression=packed,
        )
        folder = place / f"packed-{packed}"
        read = functools.partial(read_set, "svhn", data_dir=folder)
        put(f"{folder.name}/svhn/test_32x32.mat", content.getvalue(), read, label=f"mat, packed: {packed}")
    planes = at_32.transpose(0, 3, 1, 2).reshape(6, -1)
    batch = pickle.dumps({b"data": planes, b"labels": labels.tolist()}, protocol=2)
    read = functools.partial(read_set, "cifar10", data_dir=place)
    put("cifar-10-batches-py/test_batch", batch, read, label="CIFAR pickle")
    read = functools.partial(read_set, "cifar100", data_dir=place)
    records = b"".join(bytes([0, label]) + row.tobytes() for label, row in zip(labels, planes, strict=True))
    put("cifar-100-binary/test.bin", records, read, label="CIFAR binary")
    large = np.zeros((2, 96, 96, 3), np.uint8)
    read = functools.partial(read_set, "stl10", data_dir=place)
    put("stl10_binary/test_y.bin", bytes([1, 2]), read, label="STL labels")
    put("stl10_binary/test_X.bin", large.tobytes(), read, label="STL images")
    copies = place / "CIFAR-10-C"
    copies.mkdir()
    np.save(copies / "fog.npy", np.concatenate([at_32, at_32]))
    np.save(copies / "labels.npy", np.concatenate([labels, labels]))
    about = {"data": "cifar10", "images": 6, "severities": [1, 5], "seed": 0, "constants": "cifar"}
    read = functools.partial(read_set, "cifar10-c/fog/5", data_dir=place)
    put("CIFAR-10-C/bacs.json", json.dumps(about).encode(), read, label="manifest of copies")
    damages = {"manifest of copies": damage_json}
    return [one_file(label, file, damages.get(label, damage_bytes), read) for label, (file, read) in files.items()]


def read_pictures(source):
    found = data.pictures(source, bacs.Preprocessing((0.5,) * 3, (0.25,) * 3, size=(8, 8)), strict=True)
    return sum_of(np.asarray(found.images))


def of_pictures(place):
    found = []
    formats = {"png": "PNG", "jpg": "JPEG", "gif": "GIF", "webp": "WEBP", "tif": "TIFF", "bmp": "BMP", "ppm": "PPM"}
    for ending, name in formats.items():
        folder = place / ending
        folder.mkdir()
        file = folder / f"a.{ending}"
        Image.fromarray(np.repeat(np.repeat(PICTURES[0], 4, axis=0), 4, axis=1)).save(file, name)
        found.append(one_file(f"picture .{ending}", file, damage_bytes, functools.partial(read_pictures, folder)))
        found.append(one_file(f"folder of .{ending}", file, damage_bytes, functools.partial(read_set, folder)))
    import pyarrow
    import pyarrow.parquet

    encoded = (place / "png" / "a.png").read_bytes()
    table = pyarrow.table({"image": [{"bytes": encoded, "path": f"{n}.png"} for n in range(4)], "label": [0, 1, 2, 0]})
    pyarrow.parquet.write_table(table, place / "encoded.parquet", compression="snappy")
    pyarrow.parquet.write_table(pyarrow.table({"image": PICTURES.tolist()}), place / "arrays.parquet")
    for name in ("encoded", "arrays"):
        file = place / f"{name}.parquet"
        found.append(one_file(f"Parquet, {name}", file, damage_bytes, functools.partial(read_pictures, file)))
    return found


def of_the_rest(place):
    pictures = place / "pictures"
    pictures.mkdir()
    for number in range(3):
        Image.fromarray(PICTURES[number]).save(pictures / f"{number}.png")
    found = data.pictures(pictures, bacs.Preprocessing((0.5,) * 3, (0.25,) * 3, size=(8, 8)))
    with (place / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("path", "label"), *((f"{n}.png", ["cat", "dog", "2"][n]) for n in range(3))])
    np.save(place / "labels.npy", np.arange(3))

    def truth(file):
        return sum_of(read_truth(str(file), found, ["cat", "dog", "owl"]).labels)

    archive = place / "set.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for number in range(3):
            tar.add(pictures / f"{number}.png", f"set/{number}.png")

    def unpacked():
        target = place / "unpacked"
        shutil.rmtree(target, ignore_errors=True)
        unpack(archive, target, ("set",))
        return sum_of(*(np.fromfile(file, np.uint8) for file in sorted(target.rglob("*.png"))))

    return [
        one_file("labels .csv", place / "labels.csv", damage_text, functools.partial(truth, place / "labels.csv")),
        one_file("labels .npy", place / "labels.npy", damage_bytes, functools.partial(truth, place / "labels.npy")),
        one_file("archive", archive, damage_bytes, unpacked),
    ]


GROUPS = (of_ensembles, of_streams, of_runs, of_sweeps, of_recipes, of_arrays, of_sets, of_pictures, of_the_rest)

OWN = BacsError
"""The only errors that a file may end in: those that the command turns into one line."""
