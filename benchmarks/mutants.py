"""The mathematics broken on purpose, in one place at a time: do the tests notice?

    python benchmarks/mutants.py                  # all of them, some minutes each on a busy machine
    python benchmarks/mutants.py --only posteriors --record mutants.json

Each mutant is one wrong sign, factor, axis, bound or name in a copy of the tree; the tests of that part run on it and
must fail. A mutant that lives is a claim that no test makes. Exit code 1 if one lives.
"""

import argparse
import contextlib
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT = 900  # seconds; a mutant that makes the tests run for ever is one that they notice

# Not those that are plugins of pytest: it wants to import them itself.
LIBRARIES = (
    *("torch", "torch.utils.data", "numpy", "scipy.stats", "scipy.optimize", "scipy.special", "sklearn.metrics"),
    *("torchmetrics", "torchmetrics.classification", "beartype"),
    *("PIL.Image", "safetensors.torch", "pyarrow.parquet", "rich.progress", "tyro"),
)

TESTS = {
    "objectives.py": ["tests/test_objectives.py"],
    "agreement.py": ["tests/test_agreement.py"],
    "temperature.py": ["tests/test_temperature.py"],
    "metrics.py": ["tests/test_metrics.py"],
    "predictive.py": ["tests/test_predictions.py", "tests/test_ensemble.py"],
    "adaptation/descend.py": ["tests/adaptation/test_descend.py"],
    "adaptation/mixture.py": ["tests/adaptation/test_mixture.py"],
    "adaptation/statistics.py": ["tests/adaptation/test_statistics.py"],
    "adaptation/views.py": ["tests/adaptation/test_views.py"],
    "adaptation/loop.py": ["tests/methods/test_methods.py", "tests/methods/test_stream.py"],
    "adaptation/forward.py": ["tests/test_temperature.py", "tests/test_ensemble.py"],
    "posteriors": ["tests/posteriors"],
    "control": ["tests/control"],
    "methods/moved.py": ["tests/test_predictions.py", "tests/methods/test_stream.py"],
}


class Mutant(NamedTuple):
    file: str  # below src/bacs
    before: str  # occurs once
    after: str


MUTANTS = [
    # objectives
    Mutant("objectives.py", "return -(log_p.exp() * log_p).sum(dim=-1)", "return (log_p.exp() * log_p).sum(dim=-1)"),
    Mutant("objectives.py", ".logaddexp(view.log_softmax(dim=-1))", ".add(view.log_softmax(dim=-1))"),
    Mutant("objectives.py", "mean_entropy(logits) - entropy(log_mean)", "mean_entropy(logits) + entropy(log_mean)"),
    Mutant(
        "objectives.py", "(entropy(logits) + entropy(view)) / 2).mean()", "(entropy(logits) + entropy(view))).mean()"
    ),
    Mutant("objectives.py", "shares / (len(peers) + 1)", "shares / len(peers)"),
    Mutant("objectives.py", "+ logits.detach().softmax(dim=-1)", "+ logits.softmax(dim=-1)"),
    Mutant("objectives.py", "(weight * temperature, function", "(weight, function"),
    Mutant(
        "objectives.py",
        "logits if temperature == 1 else logits / temperature",
        "logits if temperature == 1 else logits * temperature",
    ),
    # agreement
    Mutant("agreement.py", "double() / (members * (members - 1))", "double() / (members * members)"),
    Mutant("agreement.py", ".sum(dim=0) for own in labels) - members", ".sum(dim=0) for own in labels)"),
    Mutant("agreement.py", "1 + predictive.confidences / (members + 1)", "1 + 4 * predictive.confidences"),
    Mutant("agreement.py", "if other != place]", "if other >= 0]"),
    Mutant("agreement.py", "chance = float(shares.square().sum())", "chance = float(shares.sum())"),
    Mutant("agreement.py", "members.sum(dim=0) - members, members)", "members.sum(dim=0), members)"),
    Mutant("agreement.py", "-total.mean() / (count * (count - 1))", "-total.mean() / count"),
    Mutant("agreement.py", "GAIN * (1 - single)", "GAIN * single"),
    Mutant("agreement.py", "(members - 1)), figures.confidence)", "(members - 1)), 1.0)"),
    Mutant("agreement.py", "single = min(single, ensemble)", "single = single"),
    Mutant("agreement.py", "+ logit(accuracy_there) - logit(there)", "- logit(accuracy_there) + logit(there)"),
    Mutant("agreement.py", "share * (1 - share) / images + spread**2", "share * (1 - share) / images"),
    Mutant("agreement.py", "SPREAD[reference is not None]), reference", "SPREAD[reference is None]), reference"),
    Mutant(
        "agreement.py", "min(max(share, 0.5 / images), 1 - 0.5 / images)", "min(max(share, 0.5 / images), 1 - 1e-12)"
    ),
    Mutant(
        "agreement.py", "math.exp(float(torch.special.entr(shares).sum()))", "float(torch.special.entr(shares).sum())"
    ),
    # temperature
    Mutant("temperature.py", ".log() / temperature).softmax", ".log() * temperature).softmax"),
    Mutant(
        "temperature.py",
        "mean = tempered(member_probabilities, temperature).mean(dim=0)\n",
        "mean = tempered(member_probabilities.mean(dim=0), temperature)\n",
    ),
    Mutant("temperature.py", "return as_confident_as(guess.ensemble,", "return as_confident_as(guess.members,"),
    Mutant("temperature.py", "images, members, reference)\n", "images, members, None)\n"),
    Mutant("temperature.py", "others * (1 + FALL", "others / (1 + FALL"),
    Mutant("temperature.py", "own.argmax(dim=-1, keepdim=True)", "others.argmax(dim=-1, keepdim=True)"),
    Mutant("temperature.py", "return max(1.0, others", "return max(0.0, others"),
    Mutant(
        "temperature.py",
        "if falling(LOWEST) <= 0:\n        return LOWEST",
        "if falling(LOWEST) <= 0:\n        return HIGHEST",
    ),
    # metrics
    Mutant("metrics.py", "np.eye(p.shape[1])[y]) ** 2).sum(axis=1)", "np.eye(p.shape[1])[y]) ** 2).mean(axis=1)"),
    Mutant(
        "metrics.py",
        "np.abs(curve.accuracy - curve.confidence).mean()",
        "np.abs((curve.accuracy - curve.confidence).mean())",
    ),
    Mutant("metrics.py", "np.cumsum(1 - correct[::-1]) / kept", "np.cumsum(1 - correct) / kept"),
    Mutant("metrics.py", "min(bins, len(confidence))", "bins"),
    Mutant("metrics.py", "np.floor(coverage * len(curve.risk) + 1e-9)", "np.ceil(coverage * len(curve.risk) + 1e-9)"),
    Mutant("metrics.py", "np.bincount(group, weights=correct) / sizes", "np.bincount(group, weights=correct)"),
    Mutant("metrics.py", "np.mean(errors[name]) / baseline", "np.mean(errors[name]) * baseline"),
    Mutant(
        "metrics.py", "return value > other if self.higher_is_better", "return value < other if self.higher_is_better"
    ),
    # predictive
    Mutant(
        "predictive.py",
        "self._probabilities / count, self._entropies / count",
        "self._probabilities / count, self._entropies",
    ),
    Mutant(
        "predictive.py",
        "(predictive_entropy(predictive) - predictive.expected_entropy)",
        "(predictive_entropy(predictive) + predictive.expected_entropy)",
    ),
    Mutant("predictive.py", "rows.clone() if", "rows if"),
    Mutant(
        "predictive.py", 'np.argsort(-confidence, kind="stable")[:kept]', 'np.argsort(confidence, kind="stable")[:kept]'
    ),
    Mutant("predictive.py", "int((means >= accuracy).sum())", "int((means > accuracy).sum()) + 1"),
    Mutant(
        "predictive.py", "entropy(probabilities.double().mean(dim=0))", "entropy(probabilities.double()).mean(dim=0)"
    ),
    # adaptation
    Mutant(
        "adaptation/descend.py",
        "self.posterior_weight * self.learning_rate / (1 - self._momentum)",
        "self.posterior_weight * self.learning_rate",
    ),
    Mutant("adaptation/descend.py", '(1 - decay ** memory["step"])', 'decay ** memory["step"]'),
    Mutant("adaptation/descend.py", "objective - posterior_weight * log_q", "objective + posterior_weight * log_q"),
    Mutant("adaptation/descend.py", "betas=(momentum, 0.999)", "betas=(0.9, 0.999)"),
    Mutant("adaptation/mixture.py", "root = ctx.r**0.5", "root = ctx.r"),
    Mutant("adaptation/mixture.py", "((1 - ctx.r) * dbeta - ctx.r", "((1 - ctx.r) * dbeta + ctx.r"),
    Mutant(
        "adaptation/mixture.py", "torch.lerp(variance, batch_variance, r)", "torch.lerp(batch_variance, variance, r)"
    ),
    Mutant("adaptation/statistics.py", "layer.momentum = len(batch) / seen", "layer.momentum = 1 / seen"),
    Mutant("adaptation/statistics.py", "layer.momentum = momentum\n", "layer.momentum = layer.momentum\n"),
    Mutant("adaptation/statistics.py", 'or (self.reference == "running" and self.batch_weight > 0)', "or False"),
    Mutant(
        "adaptation/views.py",
        "top, left = reach[0] - down, reach[1] - right",
        "top, left = reach[0] - right, reach[1] - down",
    ),
    Mutant("adaptation/views.py", "1_000_003 + step", "1_000_003"),
    Mutant("adaptation/loop.py", "share=min(1.0, epochs - done)", "share=1.0"),
    Mutant("adaptation/loop.py", "[*own[:place], *own[place + 1 :]]", "own"),
    Mutant(
        "adaptation/forward.py", "(logits.detach().double() / temperature)", "(logits.detach().double() * temperature)"
    ),
    # posteriors
    Mutant("posteriors/gaussian.py", "log_det + 2 * root.diagonal()", "log_det + root.diagonal()"),
    Mutant(
        "posteriors/gaussian.py", "squares = squares - torch.cholesky_solve", "squares = squares + torch.cholesky_solve"
    ),
    Mutant("posteriors/gaussian.py", "q.variance[name].sqrt() * _normal", "q.variance[name] * _normal"),
    Mutant("posteriors/gaussian.py", "step[name] / (variance + step[name])", "variance / (variance + step[name])"),
    Mutant("posteriors/gaussian.py", "+ count * math.log(2 * math.pi)", "+ math.log(2 * math.pi)"),
    Mutant(
        "posteriors/gaussian.py", "q.mean[name] + d - step[name] * solved", "q.mean[name] + d + step[name] * solved"
    ),
    Mutant("posteriors/gaussian.py", "{name: v / scale for", "{name: v * scale for"),
    Mutant("posteriors/gaussian.py", "root = math.sqrt(scale)", "root = scale"),
    Mutant("posteriors/scale.py", "learning_rate, momentum) / scale", "learning_rate, momentum)"),
    Mutant("posteriors/scale.py", "posterior_weight * scale / _variances", "posterior_weight / _variances"),
    Mutant("posteriors/swag_diag.py", "(value - old) * (value - mean[name])", "(value - old) * (value - old)"),
    Mutant("posteriors/swag_diag.py", "total / state.count for", "total / (state.count - 1) for"),
    Mutant("posteriors/swag_diag.py", "v.clamp_min(min_variance)", "v + min_variance"),
    Mutant("posteriors/swag_low_rank.py", "(2 * (kept - 1)) ** -0.5", "(2 * kept) ** -0.5"),
    Mutant("posteriors/swag_low_rank.py", "{name: v / 2 for name, v in floored.items()}", "floored"),
    Mutant("posteriors/swag_low_rank.py", "[-state.rank :]", "[: state.rank]"),
    Mutant(
        "posteriors/fisher_diag.py",
        "(state.source_size or state.count) / state.count",
        "(state.source_size or 1) / state.count",
    ),
    Mutant("posteriors/fisher_diag.py", "value < 2 * state.prior_precision", "value > 2 * state.prior_precision"),
    Mutant("posteriors/scale.py", "pull * (1 - momentum) / learning_rate", "pull / (1 - momentum) / learning_rate"),
    Mutant("posteriors/scale.py", "variance + factor[name].square().sum(dim=0)", "variance"),
    # control
    Mutant(
        "control/probe.py",
        ".mean()) - penalty * collapse(seen, anchor)",
        ".mean()) + penalty * collapse(seen, anchor)",
    ),
    Mutant(
        "control/probe.py",
        "anchor.counted_classes / seen.counted_classes",
        "seen.counted_classes / anchor.counted_classes",
    ),
    Mutant("control/probe.py", "/ count**0.5 if count", "if count"),
    Mutant("control/probe.py", "images.flip(-2 if images.dtype == torch.uint8 else -1)", "images.flip(-1)"),
    Mutant("control/candidates.py", "if better <= errors * error:", "if better <= -1:"),
    Mutant("control/candidates.py", "found[max(anchor_of(found), batch_weight)]", "found[batch_weight]"),
    Mutant("control/candidates.py", "int(ensemble.class_mask.sum())", "classes"),
    Mutant("control/steps.py", "WAY / steps", "WAY * steps"),
    Mutant("control/choose.py", "< trying.MIXED:", "> trying.MIXED:"),
    Mutant("control/choose.py", "if total < ENOUGH:", "if total < 0:"),
    Mutant("control/choose.py", "if batch_weight == 0:", "if batch_weight == 1:"),
    Mutant("control/auto.py", "torch.lerp(theirs.to(own), own, part)", "torch.lerp(own, theirs.to(own), part)"),
    Mutant("control/auto.py", "if better > 0:", "if better > -1:"),
    Mutant("control/decide.py", "chosen.adapts and gain.better < -gain.error:", "chosen.adapts and gain.better < -9:"),
    Mutant("control/decide.py", "and gain.better >= 0:", "and gain.better > 0:"),
    Mutant("control/standing.py", "settled < FIRST)", "settled <= FIRST)"),
    Mutant(
        "control/signals.py",
        "(jump := abs(float(jumps[place]))) > SURPRISE",
        "(jump := float(jumps[place])) > SURPRISE",
    ),
    Mutant(
        "control/signals.py",
        "(spread * (1 / latest + 1 / len(before))).sqrt()",
        "(spread * (1 / latest + 1 / len(before)))",
    ),
    # how far
    Mutant("methods/moved.py", "(deviation.square() / variance).sum()", "(deviation.square() / variance.sqrt()).sum()"),
    Mutant("methods/moved.py", "math.sqrt(total / count)", "math.sqrt(total)"),
]


def tests_of(mutant):
    """The tests that should notice."""
    return next(tests for part, tests in TESTS.items() if mutant.file == part or mutant.file.startswith(f"{part}/"))


def copy_tree(target):
    """A copy of what is broken, and links to all the rest."""
    for place in ROOT.iterdir():
        if place.name == "src":
            shutil.copytree(place, target / "src", ignore=shutil.ignore_patterns("__pycache__"))
        elif not place.name.startswith("."):
            (target / place.name).symlink_to(place)


def warm():
    """Imports what is not broken once, for all: a mutant's tests run in a fork of this process and begin at once."""
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def lives(mutant, tree):
    """Whether the tests pass on the broken copy, and the line that they end in; the copy is whole again afterwards."""
    file = tree / "src" / "bacs" / mutant.file
    text = file.read_text()
    if text.count(mutant.before) != 1:
        raise SystemExit(f"{mutant.file} has not {mutant.before!r} just once: the mutant is out of date")
    file.write_text(text.replace(mutant.before, mutant.after))
    output = tree / "output"
    child = os.fork()
    if child == 0:
        run_tests(tree, output, tests_of(mutant))
    try:
        code = wait(child)
    finally:
        file.write_text(text)
    if code is None:
        return False, "ran out of time"
    lines = output.read_text(errors="replace").splitlines()
    if code not in (0, 1):
        raise SystemExit("\n".join(["the tests could not run:", *lines[-30:]]))
    failed = [line for line in lines if line.startswith("FAILED")]
    return code == 0, (failed or lines[-1:])[0][:160]


def run_tests(tree, output, tests):
    """The tests on the copy; ends this process."""
    with output.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    os.chdir(tree)
    sys.path[:0] = [str(tree / "src"), str(tree)]
    os.environ["PYTHONPATH"] = f"{tree / 'src'}{os.pathsep}{tree}"  # for tests that start processes
    code = 2
    try:
        code = int(pytest.main(["-q", "-x", "--no-header", "-p", "no:cacheprovider", *tests]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def wait(child):
    """The exit code of a process, None if it had to be ended."""
    for _ in range(5 * TIMEOUT):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.2)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="mutants whose file begins with this")
    parser.add_argument("--record", type=Path, help="a JSON file for the outcome of each")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if mutant.file.startswith(options.only)]
    outcomes = []
    warm()
    with tempfile.TemporaryDirectory() as folder:
        copy_tree(Path(folder))
        for mutant in chosen:
            alive, line = lives(mutant, Path(folder))
            outcomes.append({**mutant._asdict(), "lives": alive, "line": line})
            print(f"{'LIVES ' if alive else 'killed'} {mutant.file}: {mutant.after.strip()!r}  {line}", flush=True)
    living = [outcome for outcome in outcomes if outcome["lives"]]
    print(f"{len(chosen) - len(living)} of {len(chosen)} mutants killed")
    if options.record is not None:
        options.record.write_text(json.dumps(outcomes, indent=1) + "\n")
    return 1 if living else 0


if __name__ == "__main__":
    sys.exit(main())
