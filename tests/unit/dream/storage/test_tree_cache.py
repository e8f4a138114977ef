"""Trees kept on disk: read again while the game does the same, built anew as soon as it does something else."""

from __future__ import annotations

import copy
import dataclasses
import errno
import functools
import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import jax
import numpy as np
import pytest

import envs
from dream.evaluation import match
from dream.game_tree import tree as trees
from dream.game_tree.probe import agrees
from dream.game_tree.sequence_form import nash_conv
from dream.storage import tree_cache
from dream.storage.tree_cache import stored_tree
from envs.source_key import player_key, source_key

GAME = """
import dataclasses
from my_pay import pay
from envs.kuhn_poker import KuhnPoker

@dataclasses.dataclass(frozen=True)
class Mine(KuhnPoker):
    name = "mine"

    def outcomes(self, state, action):
        states, probs, rewards, done = super().outcomes(state, action)
        return states, probs, pay(rewards), done
"""
PAY = "FACTOR = {}\ndef pay(rewards):\n    return rewards * FACTOR\n"


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModuleType]]:
    """Writes the user's two modules and imports them anew; the cache is in tmp_path too."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("DREAM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def make(factor: float, game: str = GAME, pay: str = PAY) -> ModuleType:
        tree_cache._KEPT.clear()
        (tmp_path / "my_game.py").write_text(game)
        (tmp_path / "my_pay.py").write_text(pay.format(factor))
        for name in ("my_game", "my_pay"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("my_game")

    yield make
    for name in ("my_game", "my_pay"):
        sys.modules.pop(name, None)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The games whose trees are built, as they are."""
    found: list[str] = []

    def build(game: envs.EnumerableGame, **settings: object) -> trees.Tree:
        found.append(game.name)
        return trees.build_tree(game, **settings)

    monkeypatch.setattr(tree_cache, "build_tree", build)
    return found


def _uniform(game: envs.EnumerableGame) -> float:
    tree = stored_tree(game)
    return nash_conv(tree, tree.uniform())


def test_an_edited_payoff_is_seen(load: Callable[..., ModuleType], built: list[str]) -> None:
    """In a module that the game's imports: the exact value is the new one; unedited, the tree is read from disk."""
    before = _uniform(load(1.0).Mine())
    assert _uniform(load(1.0).Mine()) == before
    assert len(built) == 1
    assert _uniform(load(2.0).Mine()) == pytest.approx(2 * before)
    assert len(built) == 2
    assert _uniform(load(1.0).Mine()) == before
    assert len(built) == 2


def _rebound(module: ModuleType, folder: Path) -> None:
    module.FACTOR = 2.0


def _in_its_module(module: ModuleType, folder: Path) -> None:
    module.my_pay.FACTOR = 2.0


def _reloaded(module: ModuleType, folder: Path) -> None:
    (folder / "my_pay.py").write_text(PAY.format(2.0))
    importlib.invalidate_caches()
    importlib.reload(module.my_pay)


GLOBAL = GAME.replace("from my_pay import pay\n", "FACTOR = 1.0\n").replace("pay(rewards)", "rewards * FACTOR")
BY_MODULE = GAME.replace("from my_pay import pay", "import my_pay").replace("pay(rewards)", "my_pay.pay(rewards)")
ATTRIBUTE = BY_MODULE.replace("my_pay.pay(rewards)", "rewards * my_pay.FACTOR")


@pytest.mark.parametrize("first", ["its tree", "another program"])
@pytest.mark.parametrize(
    ("game", "change"),
    [
        (GLOBAL, _rebound),
        (BY_MODULE, _in_its_module),
        (ATTRIBUTE, _in_its_module),
        (BY_MODULE, _reloaded),
    ],
    ids=["global", "global of a module", "attribute of a module", "reload"],
)
def test_an_equal_game_that_does_something_else_is_traced_anew(
    load: Callable[..., ModuleType], tmp_path: Path, game: str, change: Callable[..., None], first: str
) -> None:
    """In one process, with the game's class as it was; what is stored is right, and read again as such."""
    module = load(1.0, game)
    played = module.Mine()
    build = _uniform if first == "its tree" else trees.build_tree
    build(played)
    change(module, tmp_path)
    right = 2 * _uniform(envs.make("kuhn_poker"))
    assert _uniform(played) == pytest.approx(right)
    tree_cache._KEPT.clear()
    assert _uniform(module.Mine()) == pytest.approx(right)


STEP = """
import dataclasses
{}
from envs.kuhn_poker import KuhnPoker

@dataclasses.dataclass(frozen=True)
class Mine(KuhnPoker):
    name = "mine"
    worst_reward = -4.0

    def step(self, state, action):
        after, rewards, done = super().step(state, action)
        return after, {}, done
"""


@pytest.mark.parametrize(
    ("game", "change"),
    [
        (STEP.format("FACTOR = 1.0", "rewards * FACTOR"), _rebound),
        (STEP.format("import my_pay", "my_pay.pay(rewards)"), _in_its_module),
    ],
    ids=["global", "global of a module"],
)
def test_trees_and_matches_see_it_too(
    load: Callable[..., ModuleType], tmp_path: Path, game: str, change: Callable[..., None]
) -> None:
    """Without a stored tree between: each is asked before and after the change, in one process, of an equal game."""
    module = load(1.0, game)
    played = module.Mine()

    def asked() -> list[float]:
        bold = envs.Policy(lambda params, view, legal: (np.arange(2) == 1) * 1.0, game=played)
        tree = trees.build_tree(played)
        kept = trees.kept_tree(played)
        report = match(played, bold, envs.uniform_policy(), games=64)
        return [nash_conv(tree, tree.uniform()), nash_conv(kept, kept.uniform()), report["points_per_hand"].mean]

    before = asked()
    change(module, tmp_path)
    assert asked() == pytest.approx([2 * value for value in before])


FROM_FILE = "import json, pathlib\nFACTOR = {}\nPAID = pathlib.Path(__file__).with_name('pay.json')\n"
FROM_FILE += "def pay(rewards):\n    return rewards * json.loads(PAID.read_text())\n"


def test_a_payoff_from_a_data_file_is_seen(
    load: Callable[..., ModuleType], built: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The source is the same, so that only the sample of histories shows it."""
    (tmp_path / "pay.json").write_text("1.0")
    before = _uniform(load(0, pay=FROM_FILE).Mine())
    (tmp_path / "pay.json").write_text("2.0")
    assert _uniform(load(0, pay=FROM_FILE).Mine()) == pytest.approx(2 * before)
    assert built == ["mine", "mine"]
    said = capsys.readouterr().err
    assert "disagrees with the game" in said
    assert said.count("\n") == 1


def test_a_game_typed_in_is_known_by_its_code(load: Callable[..., ModuleType]) -> None:
    """Two classes alike in name and rules, made from strings: no source, and no mixing up in memory or on disk."""
    load(1.0)
    kinds = []
    for factor in (1.0, 3.0):
        space: dict[str, object] = {"__name__": "__main__"}
        exec(GAME.replace("from my_pay import pay", f"def pay(rewards): return rewards * {factor}"), space)
        kinds.append(space["Mine"])
    one, other = (kind() for kind in kinds)
    assert one.identity == other.identity
    assert source_key(one) != source_key(other)
    assert _uniform(other) == pytest.approx(3 * _uniform(one))
    assert stored_tree(one) is stored_tree(kinds[0]())


SHOW = "import my_game; from envs.source_key import player_key, source_key; print(source_key(my_game.Mine()))"


def test_the_key_is_the_same_in_every_process(load: Callable[..., ModuleType], tmp_path: Path) -> None:
    """Else nothing would ever be read again; hashes of strings differ between processes, and must not show."""
    here = source_key(load(1.0).Mine())
    repo = Path(__file__).resolve().parents[4]
    for seed in ("1", "2"):
        environment = {"PYTHONPATH": f"{tmp_path}:{repo}", "PYTHONHASHSEED": seed, "JAX_PLATFORMS": "cpu"}
        done = subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == here


PLAYER = """
import envs
from my_pay import pay

class Bot:
    def __call__(self, params, view, legal):
        return {}

def outer(params, view, legal):
    return params[0](view, legal)

def make():
    return envs.Policy(outer, (envs.Policy(Bot()), 1.0))
"""


def test_a_player_is_known_by_its_code(load: Callable[..., ModuleType]) -> None:
    """By that of a policy that it plays by, an object, by what that imports, and by its game's; the same anew."""
    plain, scaled = PLAYER.format("legal / legal.sum()"), PLAYER.format("pay(legal)")
    game = envs.make("kuhn_poker")
    keys = [
        player_key(load(factor, code).make(), game)
        for factor, code in ((1.0, plain), (1.0, plain), (1.0, scaled), (2.0, scaled))
    ]
    assert keys[0] == keys[1]
    assert len({*keys, player_key(load(2.0, scaled).make(), envs.make("leduc_poker"))}) == 4
    with_more = player_key(load(1.0, plain).make(), game, ["dream.storage.solved"])
    assert with_more != keys[0]


@pytest.mark.parametrize("wrap", [functools.partial, jax.jit])
def test_a_player_that_is_wrapped_is_known_by_what_is_wrapped(load: Callable[..., ModuleType], wrap: Callable) -> None:
    """By JAX or with arguments given before; the code of a module that is replaced while it runs counts as well."""
    module, game = load(1.0, PLAYER.format("pay(legal)")), envs.make("kuhn_poker")
    player = envs.Policy(wrap(module.outer), (envs.Policy(module.Bot()),))
    before = player_key(player, game)
    module.Bot.__call__ = lambda bot, params, view, legal: legal
    assert player_key(player, game) != before


def test_a_copy_leaves_the_key(load: Callable[..., ModuleType]) -> None:
    """Python notes the slots of a class when an instance is first copied."""
    game = load(1.0).Mine()
    before = source_key(game)
    copy.copy(game)
    assert "__slotnames__" in vars(type(game))
    assert source_key(game) == before


DESCRIBED = '''"""What the module is."""
import dataclasses
from my_pay import pay
from envs.kuhn_poker import KuhnPoker

# A game of one's own.
@dataclasses.dataclass(frozen=True)
class Mine(KuhnPoker):
    """What the game is."""

    name = "mine"  # its name
    """What the name is."""

    def outcomes(self, state, action):
        """What it does.

        On several lines.
        """
        states, probs, rewards, done = super().outcomes(state, action)

        return states, probs, pay(rewards), done  # "paid" by #1
'''


def test_what_is_said_of_a_game_leaves_the_key(load: Callable[..., ModuleType]) -> None:
    """Comments, docstrings and empty lines: who explains a game loses no tree and no ladder."""
    bare = GAME.replace("        states", '        """It does."""\n        states')
    assert source_key(load(1.0, DESCRIBED).Mine()) == source_key(load(1.0, bare).Mine())


TEXT = """
def pay(rewards): "A docstring beside code."; return rewards * {}
MARKS = "#1", '''#2

#3'''
"""


def test_what_looks_like_prose_and_is_code_changes_the_key(load: Callable[..., ModuleType]) -> None:
    """A number sign or an empty line in a text, and code on a docstring's line."""
    texts = [TEXT, *(TEXT.replace(*change) for change in (("#1", "#4"), ("#2", "#4"), ("#3", "#4"), ("\n\n#", "\n#")))]
    keys = [
        source_key(load(factor, pay=text).Mine()) for factor, text in ((2.0, TEXT), *((1.0, text) for text in texts))
    ]
    assert len(set(keys)) == len(keys)


CHANGES = {
    "payoff": lambda a: a["payoff"].__imul__(1.01),
    "chance": lambda a: a["chance"].__imul__(0.5),
    "legal": lambda a: np.logical_not(a["legal"], out=a["legal"]),
    "player": lambda a: np.negative(a["player"], out=a["player"]),
    "infoset": lambda a: a["infoset"].__iadd__(1),
    "view_0": lambda a: np.add(a["view_0"], 1, out=a["view_0"], casting="unsafe"),
    "action": lambda a: a.update(action=a["action"][::-1].copy()),
    "parent": lambda a: a.update(parent=a["parent"][:5]),
    "levels": lambda a: a.update(levels=a["levels"][:0]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_tree_that_disagrees_is_built_anew(
    load: Callable[..., ModuleType], built: list[str], tmp_path: Path, name: str
) -> None:
    """Whatever part of the stored arrays is not the game's."""
    game = load(1.0).Mine()
    right = _uniform(game)
    (file,) = (tmp_path / "cache" / "trees").iterdir()
    arrays = dict(np.load(file))
    CHANGES[name](arrays)
    np.savez(file, **arrays)
    tree_cache._KEPT.clear()
    assert _uniform(game) == right
    assert len(built) == 2


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"\x93NUMPY"])
def test_a_damaged_file_is_built_anew(
    load: Callable[..., ModuleType], built: list[str], tmp_path: Path, content: bytes
) -> None:
    """As a full disk or another program leaves it."""
    game = load(1.0).Mine()
    right = _uniform(game)
    (file,) = (tmp_path / "cache" / "trees").iterdir()
    file.write_bytes(content)
    tree_cache._KEPT.clear()
    assert _uniform(game) == right
    assert len(built) == 2
    tree_cache._KEPT.clear()
    assert _uniform(game) == right
    assert len(built) == 2


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_an_unwritable_cache_costs_time_alone(
    load: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    """One line, and the tree."""

    def refuse(*arguments: object, **settings: object) -> None:
        raise OSError(number, "refused")

    monkeypatch.setattr(tree_cache.np, "savez", refuse)
    assert _uniform(load(1.0).Mine()) > 0
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "cannot be written (refused)" in said


def test_a_cache_folder_that_is_a_file(load: Callable[..., ModuleType], tmp_path: Path) -> None:
    """Neither read nor written, and the tree is there."""
    (tmp_path / "cache").write_text(json.dumps("in the way"))
    assert _uniform(load(1.0).Mine()) > 0


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker"])
def test_a_tree_agrees_with_its_game(name: str) -> None:
    """Chance at the deal, and in the middle of the game."""
    game = envs.make(name)
    assert agrees(trees.build_tree(game), game)


@pytest.mark.parametrize("whole", [500_000, 0])
def test_a_rare_payoff_shows(whole: int) -> None:
    """Of a small tree a single one; of a large one all of a kind, however few."""
    game = envs.make("leduc_poker")
    tree = trees.build_tree(game)
    largest = np.flatnonzero((tree.infoset == trees.TERMINAL) & (tree.payoff[:, 0] == tree.payoff.max()))
    changed = largest[:1] if whole else largest
    payoff = tree.payoff.copy()
    payoff[changed] *= 10
    assert not any(agrees(dataclasses.replace(tree, payoff=payoff), game, whole=whole) for _ in range(5))
    assert agrees(tree, game, whole=whole)
