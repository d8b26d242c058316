"""`bacs serve`: the adapting ensemble as a service."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import OmitArgPrefixes, Positional

from bacs.cli.adapt import METHODS as NAMES
from bacs.cli.adapt import Wishes
from bacs.cli.arguments import Flag, takes
from bacs.errors import RunError
from bacs.serve.limits import Limits

if TYPE_CHECKING:
    from bacs.methods import Stream
    from bacs.serve.state import State

LIMITS = Limits()


@dataclass(frozen=True)
class Address:
    """Where the service listens, and who may speak to it.

    Attributes:
        host: Address to listen on; others than this machine need a token.
        port: 0 takes any that is free, and the log says which.
        token_file: File with the token that every request must show, as Authorization: Bearer TOKEN.
        no_token: Listen on an address that others reach, and let all of them in. Control needs the token that the log
            shows even then.
    """

    host: Annotated[str, takes("HOST")] = "127.0.0.1"
    port: int = 8000
    token_file: Annotated[Path | None, takes("FILE")] = None
    no_token: Flag = False


THIS_MACHINE = Address()


def serve(
    run: Annotated[Positional[Path], takes("RUN")],
    *,
    address: OmitArgPrefixes[Address] = THIS_MACHINE,
    method: Annotated[str | None, takes("|".join(NAMES))] = None,
    adapt: Flag = True,
    batch_size: int = 64,
    delay: float = 0.02,
    state: Annotated[Path | None, takes("DIR")] = None,
    save_every: int = 50,
    name: Annotated[str | None, takes("NAME")] = None,
    pictures: Flag = True,
    coverage: Annotated[float | None, takes("SHARE")] = None,
    accuracy: Annotated[float | None, takes("SHARE")] = None,
    learning_rate: float = 1e-3,
    posterior_weight: float = 1e-4,
    batch_weight: Annotated[float | None, takes("SHARE")] = None,
    statistics: Annotated[str, takes("source|running")] = "source",
    temperature: Annotated[float | Literal["agreement"] | None, takes("NUMBER|agreement")] = None,
    device: Annotated[str, takes("cpu|cuda")] = "cpu",
    size: Annotated[tuple[int, int] | None, takes("HEIGHT WIDTH")] = None,
    model: Annotated[str | None, takes("MODULE:CLASS")] = None,
    limits: OmitArgPrefixes[Limits] = LIMITS,
) -> int:
    """Serve an ensemble that adapts to what it is shown, with a page to watch it.

    Example: bacs serve runs/cifar10 --state runs/cifar10-live

    Clients send pictures to /predict or tensors by the Open Inference Protocol v2; the page is at /. docs/serve.md has
    examples. SIGTERM ends it: what was accepted is answered, and the stream is saved.

    Args:
        run: A saved ensemble or stream, or the folder of a training run.
        method: auto, which decides without labels how far to adapt, unless you say what adapts.
        adapt: Begin frozen: predict, and adapt only when the page or /control/resume says so.
        batch_size: Images of a step at most, and of a request.
        delay: Seconds without another request until a batch is held no longer; five times that at most.
        state: Folder that keeps the stream; a restart goes on with it.
        save_every: Batches between two saves: what a kill may cost.
        name: What clients call the model; the run's folder by default.
        pictures: Do not show the last pictures on the page.
        coverage: Share of the images to answer for, 0.9 if not given; abstain is said of the least confident others.
        accuracy: Abstain as often as it takes for the others to reach this accuracy, by estimate.
        learning_rate: Of each step.
        posterior_weight: How strongly the posterior holds the weights: the paper's beta, relative to the scale that
            each member has (bacs info shows it).
        batch_weight: Share of the batch in batch norm's statistics, 0 (source) to 1; by default the method's own.
        statistics: What the other share comes from: source, or running averages that follow the images.
        temperature: Of the predictions; agreement chooses it without labels.
        device: cpu or cuda.
        size: Height and width that the model takes, if the checkpoint does not say.
        model: Import path of a class that bacs does not know, such as package.module:Class.
    """
    from bacs.checkpoints import read_manifest
    from bacs.cli.runs import method_for, open_run
    from bacs.cli.settings import check_abstaining, check_chosen
    from bacs.methods import METHODS, Stream
    from bacs.methods.catalogue import find
    from bacs.methods.settings import AGREEMENT, Settings

    try:
        from bacs.serve import logs
        from bacs.serve import server as running
        from bacs.serve.access import access_for
        from bacs.serve.state import State
    except ImportError as error:
        raise RunError(f"serving needs {error.name}: pip install 'bacs[serve]'") from error
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    if not 0 <= delay <= 60:
        raise ValueError(f"delay must be 0 to 60 seconds, got {delay}")
    limits.check(batch_size)
    access, made_up = access_for(address.host, address.token_file, no_token=address.no_token)
    read_manifest(run)  # a weight file has nothing that could be served
    method = method_for(run) if method is None else find(method)[0]
    settings = Settings(
        learning_rate=learning_rate,
        posterior_weight=posterior_weight,
        batch_weight=batch_weight,
        statistics=statistics,
        temperature=temperature,
    )
    check_chosen(method, settings)
    honest = METHODS[method].chooses or temperature == AGREEMENT
    check_abstaining(coverage, accuracy, honest=honest)
    keeper = State(state, save_every=save_every)
    sock = running.listen(address.host, address.port)
    logs.write_json_lines()
    with sock, keeper.lock():
        where: dict[str, Any] = {"device": device, "size": size, "model": model}
        stream, _ = open_run(Wishes(run, (), Path(), online=True, **where), method, settings)
        assert isinstance(stream, Stream)
        stream, frozen = resume_or_begin(stream, keeper, model=model)
        service = running.make_service(
            stream,
            keeper,
            access,
            name=name or run.resolve().name,
            batch_size=batch_size,
            delay=delay,
            limits=limits,
            frozen=frozen or not adapt,
            pictures=pictures,
            coverage=0.9 if coverage is None else coverage,
            accuracy=accuracy,
        )
        host, port = sock.getsockname()[:2]
        place = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        facts: dict[str, Any] = {"url": place, "model": service.name, "method": method, "step": stream.steps}
        facts |= {"frozen": service.worker.frozen, "token": access.token if made_up else "as in token_file"}
        ready = logging.getLogger("bacs.serve")
        server = running.make_server(service, on_ready=lambda: ready.info("ready", extra={"facts": facts}))
        return 0 if running.run(server, sock) else 1


def resume_or_begin(stream: "Stream", keeper: "State", *, model: str | None) -> "tuple[Stream, bool]":
    """The stream to serve, and whether it was frozen: where it was left, else from its start, which is kept at once.

    A folder that cannot be written is then an error before the first request.
    """
    from bacs.drivers.kept import check_goes_on

    if not keeper.exists():
        keeper.write(stream, frozen=False)
        return stream, False
    assert keeper.folder is not None
    found, frozen = keeper.read(model=model)
    check_goes_on(found, stream, keeper.folder)
    return found, frozen
