"""Runs trials of one kind in this process and prints an outcome a line: kind, count (0 for all), seed, folder."""

from __future__ import annotations

import dataclasses
import importlib
import json
import pathlib
import shutil
import sys
from collections.abc import Iterator

from trials.hold import BYTES, Outcome, Watch, inside, limit


def outcomes(kind: str, count: int, seed: int, folder: pathlib.Path) -> Iterator[Outcome]:
    """Yields the outcome of every trial; each kind's module makes its inputs and says what reads them."""
    module = importlib.import_module(f"trials.{kind}")
    place = folder / "place"
    place.mkdir()
    module.warm_up(folder)
    watch = Watch(folder)
    limit(getattr(module, "MOST_BYTES", BYTES))
    for n, (name, file, made) in enumerate(module.cases(count, seed, folder)):
        if count and n == count:
            return
        path = place / file
        data = made()
        path.write_bytes(data) if isinstance(data, bytes) else data(path)
        may = module.may(name) if hasattr(module, "may") else ()
        with inside(place):
            outcome = watch.trial(
                name, lambda path=path: module.read(path), must_be_refused=module.must_be_refused(name), may=may
            )
        left = [other.name for other in place.iterdir() if other != path]
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        yield dataclasses.replace(outcome, why=f"leaves {left[0]}") if left else outcome


def main() -> None:
    """Prints the outcomes."""
    kind, count, seed, folder = sys.argv[1:]
    for outcome in outcomes(kind, int(count), int(seed), pathlib.Path(folder)):
        print(json.dumps(dataclasses.asdict(outcome)), flush=True)


if __name__ == "__main__":
    main()
