"""Where a match's report goes: a file of its own for what makes it another match."""

from __future__ import annotations

from dream.commands.evaluate import prepared
from dream.config.schema import EvaluateConfig


def test_a_report_replaces_only_that_of_the_same_match() -> None:
    """Rounds, games to 100 and games to 100 under other scoring are three files."""
    given = ({}, {"target": 100}, {"target": 100, "scoring": "eaai"}, {"target": 100, "scoring": "modern"})
    names = [
        prepared(EvaluateConfig(checkpoint="gin_rummy/strong", opponent="simple_bot", games=4, **one)).path.name
        for one in given
    ]
    assert len(set(names)) == 4
    assert names[2].endswith("_to_100_eaai.json")
