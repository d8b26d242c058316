"""Two Ray nodes on this machine, as a cluster of two machines, and which of their processes are at work."""

from pathlib import Path


def two_nodes():
    """A fixture's cluster; `second` is the node that may be lost."""
    import ray
    from ray.cluster_utils import Cluster

    two = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    two.second = two.add_node(num_cpus=2)
    ray.init(address=two.address, log_to_driver=False)
    yield two
    ray.shutdown()
    two.shutdown()


def raylet_of(node):
    (process,) = node.all_processes["raylet"]
    return process.process.pid


def working_children(raylet):
    """Processes of a raylet that run a job at this moment: Ray makes the task's name the title of the process."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                title = (entry / "cmdline").read_bytes().decode(errors="replace")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent == raylet and title.startswith("ray::_task"):
                found.append(int(entry.name))
    return found
