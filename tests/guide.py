"""The Python snippets of docs/models.md."""

import re
from pathlib import Path

SNIPPETS = re.findall(r"```python\n(.*?)```", (Path(__file__).parents[1] / "docs" / "models.md").read_text(), re.DOTALL)


def snippet(part):
    """The one snippet with this text in it."""
    (found,) = [text for text in SNIPPETS if part in text]
    return compile(found, "docs/models.md", "exec")
