"""What can be played and against whom: games with their variants, rule-based players by name, trained ones by label."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import envs
from dream.page.refusals import RefusedError
from dream.search import names as search_names
from dream.storage import levels, shipped
from dream.storage.policies import find, game_of, player_names
from envs import Game, InputError, boards

_RUNS = Path("runs")
_MOST_RUNS = 40
_RULES_OF = "of:"
"""Before a trained player's label: the variant of a game that this player was trained in."""
ADVISORS = ("solved", "lookahead", "heuristic", "greedy", "simple_bot")
"""Players without training whose advice is worth most, the best first; else a trained player advises."""


@dataclasses.dataclass(frozen=True)
class Trained:
    """A trained player that may be chosen.

    Attributes:
      label: what the page calls it; it holds no path.
      reference: where it is.
      game: what it plays.
    """

    label: str
    reference: str
    game: Game


class Catalogue:
    """What a server offers; what a message names is looked up here, and never in the file system."""

    def __init__(self, references: Sequence[str] = (), runs: Path | None = _RUNS) -> None:
        """Looks up the players given, those that come with the package, and the runs in a folder."""
        self.trained: list[Trained] = []
        for reference in [*references, *shipped.names()]:
            self._add(reference, game_of(find(search_names.policy_in(reference))))
        folders = sorted(runs.iterdir(), reverse=True) if runs and runs.is_dir() else []
        for folder in [folder for folder in folders if (folder / "checkpoints").is_dir()][:_MOST_RUNS]:
            with contextlib.suppress(InputError):  # a run that cannot be read
                self._add(str(folder), game_of(find(str(folder))))

    def _add(self, reference: str, game: Game) -> None:
        if Path(reference).resolve() in [Path(one.reference).resolve() for one in self.trained]:
            return  # given, and found as well
        name = Path(search_names.policy_in(reference)).name
        if search_names.is_search(reference):
            worlds = search_names.parse(reference).worlds
            name = " ".join(["search", *([str(worlds)] if worlds else []), name])
        label = re.sub(r"[^\w.+ -]+", "_", name).replace("..", "_")[:80] or "player"
        taken = {one.label for one in self.trained} | set(player_names(game))
        numbered = itertools.chain([label], (f"{label} {count}" for count in itertools.count(2)))
        self.trained.append(Trained(next(one for one in numbered if one not in taken), reference, game))

    def games(self) -> list[dict[str, Any]]:
        """Returns each game by name, with its variants, their seats and players, for the page.

        A variant that cannot be made, as of a game from outside that needs rules, is left out.
        """
        found = []
        for name in envs.names():
            ways = []
            for one in boards.variants(name):
                with contextlib.suppress(InputError):
                    ways.append((one.key, boards.make(name, one.key)))
            known = [game for _, game in ways]
            ways += [(f"{_RULES_OF}{one.label}", one.game) for one in self.trained
                     if one.game.name == name and one.game not in known]  # fmt: skip
            variants = [
                {"key": key, "seats": game.num_players, "unit": game.unit, "players": self.players(game),
                 "levels": levels.names(game), "advisor": self.advisor(game)} for key, game in ways]  # fmt: skip
            found += [{"game": name, "variants": variants}] if variants else []
        return found

    def game(self, name: str, variant: str) -> Game:
        """Returns a game in a variant.

        Raises:
          InputError: an unknown game or variant, or a game from outside that cannot be made.
        """
        if name not in envs.names():
            raise RefusedError("unknown_game", game=name)
        for one in self.trained:
            if one.game.name == name and variant == f"{_RULES_OF}{one.label}":
                return one.game
        if variant not in [one.key for one in boards.variants(name)]:
            raise RefusedError("unknown_variant", game=name, variant=variant)
        return boards.make(name, variant)

    def players(self, game: Game) -> list[str]:
        """Returns the players of a game by the names that the page uses."""
        return [*player_names(game), *(one.label for one in self.trained if one.game == game)]

    def reference(self, label: str, game: Game) -> str:
        """Returns what a player's label stands for.

        Raises:
          RefusedError: the game has no such player.
        """
        if label in player_names(game) or label in levels.names(game):
            return label
        for one in self.trained:
            if one.label == label and one.game == game:
                return one.reference
        raise RefusedError("unknown_player", game=game.name, player=label)

    def advisor(self, game: Game) -> str:
        """Returns the player that gives advice where no other is asked for."""
        names = self.players(game)
        trained = [name for name in names if name not in player_names(game)]
        return next((name for name in (*ADVISORS, *trained) if name in names), names[0])

    def reviewer(self, game: Game, opponents: Sequence[str]) -> str:
        """Returns the player that reviews a round where no other is asked for.

        Args:
          game: what was played.
          opponents: of the person, by label; the first trained one of them reviews, a search excepted.
        """
        trained = [one.label for one in self.trained if one.game == game and not search_names.is_search(one.reference)]
        return next((label for label in opponents if label in trained), self.advisor(game))
