"""A trained ResNet that left no trajectory: a Fisher posterior from source images makes it ready for `bacs.adapt`.

Run it: python examples/fisher_posterior.py
"""

import bacs
from bacs.posteriors import precision_quantiles


def trained_elsewhere(images, labels):
    """Stands for your own checkpoint: `bacs.pretrained.open_weights(file, model, preprocessing)` opens one."""
    model = bacs.training.initialised(
        lambda: bacs.models.build("resnet26", width=8, blocks=1, stem_stride=2, channels=1), seed=0
    )
    return bacs.training.fit(model, images, labels, epochs=2, batch_size=64, posterior="flat")


def main(count=1000):
    source = bacs.data.load("fashion-mnist-part", split="train")
    member = trained_elsewhere(source.images[:3000], source.labels[:3000])

    # No labels are needed. source_size is how many images the model was trained on.
    member = bacs.pretrained.with_fisher(member, source.images[:200], source_size=3000)
    ensemble = bacs.Ensemble([member])

    # A Fisher posterior is far wider than SWAG's, and the member's posterior_scale makes up for it. Weights are as
    # in the paper: at ten times its rate, a tenth of its posterior_weight pulls as hard.
    shift = bacs.data.shift("fashion-mnist-part-c/gaussian_noise/5", limit=count)
    adapted = bacs.adapt(ensemble, shift.images, "bacs", learning_rate=0.01, posterior_weight=1e-5, batch_size=64)
    median = precision_quantiles(member.posterior).median
    print(f"median precision {median:.3g}, posterior_scale {member.posterior_scale:.3g}")
    for name, one in (("unadapted", ensemble), ("adapted", adapted)):
        print(f"{name:<9} accuracy {bacs.metrics.accuracy(one.predict(shift.images), shift.labels):.3f}")


if __name__ == "__main__":
    main()
