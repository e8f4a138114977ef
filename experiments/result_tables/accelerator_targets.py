"""What is aimed at on a GPU: read by the benchmark that measures it and by the page that lists it."""

from __future__ import annotations

from typing import Any, NamedTuple

COMMAND = "python experiments/benchmarks/accelerator.py --minutes 9"
"""What measures all of it."""


class Target(NamedTuple):
    """A goal, set for one H200.

    Attributes:
      part: of the benchmark.
      figure: where the part's number is.
      what: it is of.
      unit: of the number and of the goals.
      goals: in the order in which they are to be reached.
    """

    part: str
    figure: tuple[str, ...]
    what: str
    unit: str
    goals: tuple[int, ...]

    def measured(self, parts: dict[str, Any]) -> float | None:
        """Returns the number among what the parts found, None where it is not there."""
        found: Any = parts.get(self.part, {})
        for key in self.figure:
            found = found.get(key, {})
        return found if found != {} else None


_ON_ALL = "network of three layers of 512 on all information sets"
TARGETS = (
    Target(
        "simple_bot",
        ("most_games_per_s",),
        "`gin_rummy_openspiel`: simple bot against itself, packed masks",
        "games/s",
        (300_000,),
    ),
    Target("document", ("minutes_of_800_iterations",), "800 iterations of `preset=h200`", "minutes", (10, 3)),
    Target(
        "information_sets",
        ("phantom_ttt classical", "seconds_network"),
        f"{_ON_ALL} of classical `phantom_ttt`, 6 M",
        "s",
        (60,),
    ),
    Target(
        "information_sets", ("dark_hex abrupt", "seconds_network"), f"{_ON_ALL} of abrupt `dark_hex`, 27 M", "s", (60,)
    ),
)
