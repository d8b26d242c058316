"""SWAG as a callback with Lightning's hooks: `Trainer(callbacks=[CollectSwag(0.5)])`, then `callback.member(...)`.

With Lightning installed, derive the class from `lightning.Callback`; nothing else changes.
"""

import bacs
from bacs.parameters import read
from bacs.posteriors import swag_diag


class CollectSwag:
    """Folds the weights after every epoch past `collect_from` of the training into a SWAG-D posterior."""

    def __init__(self, collect_from=0.5):
        self.collect_from = collect_from

    def on_fit_start(self, trainer, pl_module):
        self.posterior = swag_diag.init(read(pl_module.model))

    def on_train_epoch_end(self, trainer, pl_module):
        if trainer.current_epoch >= self.collect_from * trainer.max_epochs:
            self.posterior = swag_diag.update(self.posterior, read(pl_module.model))

    def state_dict(self):
        """What Lightning stores in its checkpoints, so that a resumed fit goes on collecting."""
        return self.posterior._asdict()

    def load_state_dict(self, state):
        self.posterior = swag_diag.SwagDiag(**state)

    def member(self, pl_module, inputs, preprocessing=None):
        """The member to adapt, once training is over."""
        return bacs.training.at_mean(pl_module.model, self.posterior, inputs, preprocessing)
