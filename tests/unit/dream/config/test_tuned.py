"""Do conf/tuned's sections apply where they should, in order, and below what comes after them?"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf

from dream.config import compose as composing
from dream.config import tuned
from dream.config.compose import compose_config
from dream.config.tuned import parse_choices, tuned_settings
from envs import InputError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of conf/ that is used in place of the repository's; returns its tuned/."""
    conf = tmp_path / "conf"
    shutil.copytree(tuned.config_dir(), conf)
    monkeypatch.setattr(tuned, "config_dir", lambda: conf)
    monkeypatch.setattr(composing, "config_dir", lambda: conf)
    return conf / "tuned"


def _node(*overrides: str) -> DictConfig:
    return compose_config("config", list(overrides)).node


def test_keys_of_sections() -> None:
    """Groups with one or more options each; anything else is refused."""
    assert parse_choices("algo=dream,escher network=dueling") == {"algo": ("dream", "escher"), "network": ("dueling",)}
    for wrong in ("algo", "algo=", "algo=dream,", "=dream", "algo: dream"):
        with pytest.raises(InputError, match="is not valid; it must be <group>=<option>"):
            parse_choices(wrong)


def test_sections_apply_where_all_groups_match_from_top_to_bottom(folder: Path) -> None:
    """Of three sections, the two that match: the later one wins, the rest is merged."""
    (folder / "kuhn_poker.yaml").write_text(
        "algo=ppo,dream:\n  algo: {epochs: 1, batch_size: 7}\n"
        "algo=ppo network=simba:\n  algo: {epochs: 2}\n"
        "algo=ppo network=dueling:\n  algo: {epochs: 3}\n"
    )
    choices = {"env": "kuhn_poker", "algo": "ppo", "network": "dueling"}
    assert tuned_settings("env", choices) == {"algo": {"epochs": 3, "batch_size": 7}}
    assert tuned_settings("env", choices | {"algo": "dream"}) == {"algo": {"epochs": 1, "batch_size": 7}}
    assert tuned_settings("env", choices | {"algo": "cfr"}) == {}
    assert tuned_settings("env", choices | {"env": "rummy"}) == {}


def test_order_of_precedence(folder: Path) -> None:
    """Algorithm, game's tuning, preset and its tuning, experiment and its tuning, command line: the later wins."""
    said = ["algo=ppo", "env=kuhn_poker", "preset=laptop"]
    steps = {
        "algo/ppo.yaml": ("moves_per_step: 10 ", "moves_per_step: 1 "),
        "tuned/kuhn_poker.yaml": "algo=ppo:\n  algo: {moves_per_step: 2}\n",
        "preset/laptop.yaml": "# @package _global_\nalgo: {moves_per_step: 3}\n",
        "tuned/laptop.yaml": "algo=ppo env=kuhn_poker:\n  algo: {moves_per_step: 4}\n",
        "experiment/own.yaml": "# @package _global_\nalgo: {moves_per_step: 5}\n",
        "tuned/own.yaml": "preset=laptop:\n  algo: {moves_per_step: 6}\n",
    }
    (folder.parent / "experiment" / "own.yaml").write_text("# @package _global_\nseed: 3\n")
    for file in ("tuned/kuhn_poker.yaml", "tuned/laptop.yaml", "preset/laptop.yaml"):
        (folder.parent / file).write_text("# @package _global_\n")
    for value, (file, content) in enumerate(steps.items(), start=1):
        path = folder.parent / file
        path.write_text(path.read_text().replace(*content) if isinstance(content, tuple) else content)
        tuned._sections.cache_clear()
        said += ["experiment=own"] if file == "experiment/own.yaml" else []
        if file == "experiment/own.yaml":  # until its file names the preset, the two do not go together
            with pytest.raises(InputError, match="preset=laptop cannot be combined with experiment=own"):
                _node(*said)
            (folder / "own.yaml").write_text("preset=laptop: {}\n")
            tuned._sections.cache_clear()
        assert _node(*said).algo.moves_per_step == value, file
    assert _node(*said, "algo.moves_per_step=7").algo.moves_per_step == 7


def test_what_is_tuned_for_a_network_is_for_that_network() -> None:
    """Simba has no log window and no widths of layers: combinations that were refused for these compose."""
    assert set(_node("preset=laptop", "network=simba").network) == {"name", "width", "blocks", "dtype"}
    assert _node("algo=sd_cfr", "env=leduc_poker").network.hidden == [64, 64, 64]
    assert _node("algo=sd_cfr", "env=leduc_poker", "network=simba").network.width == 64
    assert _node("preset=laptop", "env=kuhn_poker").network.log_window is None, "the game has no log"


@pytest.mark.parametrize(
    "game", ["kuhn_poker", "leduc_poker", "liars_dice", "mini_gin_rummy", "phantom_ttt", "dark_hex"]
)
def test_the_laptop_preset_leaves_games_that_are_tuned_for_a_laptop(game: str) -> None:
    """Gin's temperatures, shaping and length would take the place of the game's own."""
    for algorithm in ("dueling_dream", "ppo", "mmd", "dream"):
        chosen = [f"algo={algorithm}", f"env={game}"]
        assert _node(*chosen, "preset=laptop") == _node(*chosen)


def test_an_experiments_own_choices_count() -> None:
    """A game that an experiment chooses is tuned as one that the user chooses; the user's word is last."""
    assert _node("experiment=openspiel_ppo", "preset=laptop").network.channels == 8
    other = _node("experiment=openspiel_ppo", "preset=laptop", "network=dueling").network
    assert (other.hidden, other.dtype) == ([256, 256, 128], "float32")


def test_an_experiment_has_other_sizes_for_another_game() -> None:
    """In its own file; on its own game it is as written."""
    own, other = (_node("experiment=dueling_dream_critic", *chosen) for chosen in ([], ["env=dark_hex"]))
    assert (own.budget.nodes, own.algo.mirror.eta.start, own.algo.critic.steps) == (None, 0.1, 32)
    assert (other.budget.nodes, other.algo.mirror.eta.start, other.algo.critic.steps) == (1e6, 1.0, 100)
    assert _node("experiment=dueling_dream_critic", "env=dark_hex", "preset=tiny").algo.critic.steps == 2
    kuhn = _node("experiment=mmd_critic", "env=kuhn_poker")
    assert (kuhn.iterations, kuhn.algo.kl_weight, list(kuhn.network.hidden)) == (815, 10.0, [64, 64])


@pytest.mark.parametrize("algo", ["dueling_dream", "ppo", "mmd"])
@pytest.mark.parametrize("env", ["kuhn_poker", "leduc_poker", "liars_dice", "mini_gin_rummy"])
def test_steps_of_small_games_fall_until_the_run_ends(env: str, algo: str) -> None:
    """The run is as long as its schedules, also by a preset."""
    sections = tuned._sections(tuned.config_dir() / "tuned" / f"{env}.yaml")
    (own,) = (settings for conditions, settings in sections if conditions == {"algo": (algo,)})
    falling = [own.algo.get(name) for name in ("learning_rate_decay", "temperature")] + [
        own.algo.get("mirror", {}).get("alpha")
    ]
    lengths = {one.transition_steps for one in falling if one is not None}
    for preset in ("none", "h200"):
        assert lengths == {own.iterations} == {_node(f"preset={preset}", f"env={env}", f"algo={algo}").iterations}
    laptop = _node("preset=laptop", f"env={env}", f"algo={algo}")
    assert laptop.algo.learning_rate_decay.transition_steps == laptop.iterations


def test_the_laptop_preset_is_what_was_measured() -> None:
    """What it trains on gin rummy is the experiment; neither depends on the other."""
    own = {"dueling_dream": "dueling_dream_cards", "ppo": "ppo_gin_rummy"}
    for algo, name in own.items():
        preset, experiment = _node("preset=laptop", f"algo={algo}"), _node(f"experiment={name}")
        assert preset.network == experiment.network
        schedule = preset.algo.learning_rate_decay.pop("transition_steps")
        assert schedule == preset.iterations, "it ends with the run, whatever its length"
        assert experiment.algo.learning_rate_decay.pop("transition_steps") == experiment.iterations
        if algo == "ppo":
            shaping = preset.algo.pop("shaping"), experiment.algo.pop("shaping")
            assert [one.win_bonus for one in shaping] == [75.0, 50.0], "rounds won, or points"
            assert [one.win_bonus_after for one in shaping] == [preset.iterations / 4, 0]
            assert shaping[0].scale.transition_steps == shaping[0].win_bonus_after, "one ends as the other begins"
        assert preset.algo == experiment.algo
    assert _node("preset=laptop").algo.name == "ppo"
    assert _node("preset=laptop", "experiment=dueling_dream_cards").algo.name == "dueling_dream"


def test_a_preset_changes_nothing_of_an_experiment_unasked(folder: Path) -> None:
    """Its general tuning stops at an experiment, whose own file says what the preset means there."""
    (folder.parent / "experiment" / "own.yaml").write_text("# @package _global_\nseed: 3\n")
    (folder / "laptop.yaml").write_text("preset=laptop:\n  iterations: 7\n")
    (folder / "own.yaml").write_text("preset=laptop:\n  seed: 4\n")
    tuned._sections.cache_clear()
    assert _node("preset=laptop").iterations == 7
    node = _node("preset=laptop", "experiment=own")
    assert (node.iterations, node.seed) == (800, 4)


def test_every_rule_of_a_game_is_accepted() -> None:
    """Without +, where the game's file does not list it: of a run and of a ladder."""
    for name in ("config", "ladder"):
        node = compose_config(name, ["env=mini_gin_rummy", "env.rules.max_turns=1"]).node
        assert OmegaConf.to_container(node.env.rules)["max_turns"] == 1


def test_what_follows_is_not_chosen() -> None:
    """And is not among the choices that a run keeps."""
    with pytest.raises(InputError, match="tuned/env cannot be chosen: it follows from the other groups"):
        _node("tuned/env=leduc_poker")
    choices = compose_config("config", []).choices
    assert set(choices) == {"env", "algo", "network", "tracking", "preset", "experiment"}
