"""One process's share of the training of one member: the whole of it, or a part under torch.distributed.

Every process draws the same order and the same augmentation for the whole batch and works on its own slice, so that n
processes take the same steps as one. Batch norm uses the statistics of the slice.
"""

from dataclasses import dataclass

from torch import Tensor, distributed, nn


@dataclass(frozen=True)
class Shard:
    index: int
    count: int

    def part(self, length: int) -> slice:
        """This process's slice of a batch; slices differ by at most one image."""
        return slice(length * self.index // self.count, length * (self.index + 1) // self.count)

    def wrap(self, model: nn.Module) -> nn.Module:
        """The module to call: it averages gradients over all processes."""
        if self.count == 1:
            return model
        device = next(model.parameters()).device
        return nn.parallel.DistributedDataParallel(model, device_ids=[device] if device.type == "cuda" else None)

    def total(self, value: Tensor) -> float:
        """The sum of a scalar over all processes."""
        if self.count > 1:
            distributed.all_reduce(value)
        return value.item()


WHOLE = Shard(0, 1)


def current_shard() -> Shard:
    """The shard of this process: what torchrun says once the process group is up, else the whole."""
    if distributed.is_available() and distributed.is_initialized():
        return Shard(distributed.get_rank(), distributed.get_world_size())
    return WHOLE
