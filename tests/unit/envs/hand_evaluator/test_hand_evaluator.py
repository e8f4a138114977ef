"""The hand evaluator's names, errors, laziness and command."""

from __future__ import annotations

import itertools
import pathlib
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

from envs.errors import InputError
from envs.hand_evaluator import JOKER, HandEvaluator, best_dump_points, read_card
from envs.hand_evaluator.__main__ import main

ARTICLE = ["3H", "4H", "5H", "6H", "7H", "7C", "7S", "6S", "10S", "JD", "6D", "KH", "2C", "3D", "4S"]


def test_names_and_ids_are_the_same_cards() -> None:
    """Ten in both spellings, lower case, NumPy integers, jokers."""
    assert [read_card(card) for card in ("3H", "10S", "TS", "jd", np.int8(51))] == [15, 9, 9, 36, 51]
    assert read_card("*") == read_card("joker") == JOKER


def test_combo_in_words() -> None:
    """Runs, sets, dump with its points and count."""
    best = HandEvaluator(ARTICLE).best()
    assert str(best) == "run 3H 4H 5H, set 6S 6H 6D, set 7S 7H 7C, dump 2C 3D 4S TS JD KH (39)"
    assert best.dump_count == 6


def test_other_values() -> None:
    """With worthless court cards the same hand leaves less."""
    assert HandEvaluator(ARTICLE).best(values=[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 0, 0]).dump_points == 19


def test_ace_after_the_king() -> None:
    """Only where asked, and in one run not at both ends."""
    hand = ["QS", "KS", "AS"]
    assert HandEvaluator(hand).best().dump_points == 21
    assert HandEvaluator(hand, ace_high=True).best().runs == ((11, 12, 0),)
    suit = [*range(13), 0]
    assert max(len(run) for combo in HandEvaluator(suit, ace_high=True).combos() for run in combo.runs) == 13


def test_combos_of_a_huge_hand_come_one_by_one() -> None:
    """Both decks: the first ones at once, though nobody could list them all."""
    combos = list(itertools.islice(HandEvaluator(list(range(52)) * 2).combos(), 5))
    assert len(set(combos)) == 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: HandEvaluator(["3H", "3H", "3H"]), "third copy of 3H"),
        (lambda: HandEvaluator(["3H", "3H"]).add("3H"), "third copy of 3H"),
        (lambda: HandEvaluator(["3H"]).remove("4H"), "4H is not in the hand"),
        (lambda: HandEvaluator(["3H"]).remove("*"), r"\* is not in the hand"),
        (lambda: HandEvaluator(["14H"]), "unknown card '14H'"),
        (lambda: HandEvaluator(["3H4H"]), "it must be one card"),
        (lambda: HandEvaluator("3H xx | 4H"), "unknown card 'xx'"),
        (lambda: HandEvaluator(["*"], jokers=True).control_points, "not support jokers or an ace"),
        (lambda: HandEvaluator(["3H"], ace_high=True).flag_map, "not support jokers or an ace"),
        (lambda: HandEvaluator([53]), "unknown card 53"),
        (lambda: HandEvaluator(["*"]), "jokers=True"),
        (lambda: HandEvaluator().add("*"), "jokers=True"),
        (lambda: HandEvaluator(["*"] * 5, jokers=True), "too many jokers"),
        (lambda: HandEvaluator().combos("best"), "unknown level 'best'"),
        (lambda: HandEvaluator().combos(method="articel"), "did you mean 'article'"),
        (lambda: HandEvaluator(ace_high=True).combos(method="article"), "ace after the king"),
        (lambda: HandEvaluator(values=[1]), "13 whole numbers"),
        (lambda: HandEvaluator(values=5), "values=5 is not valid; it must be 13 whole numbers"),
        (lambda: HandEvaluator([float("inf")]), "unknown card inf"),
        (
            lambda: HandEvaluator(joker_value=1.5),
            "joker_value=1.5 is not valid; it must be a whole number, 0 to 1000000",
        ),
        (lambda: HandEvaluator(joker_value=-5), "joker_value=-5 is not valid"),
        (lambda: HandEvaluator(jokers=-1), "jokers=-1 is not valid; it must be True or False"),
        (lambda: HandEvaluator(jokers=2), "jokers=2 is not valid; it must be True or False"),
        (lambda: HandEvaluator(ace_high="no"), "ace_high='no' is not valid; it must be True or False"),
        (lambda: best_dump_points(np.zeros((1, 51))), "counts has shape"),
        (lambda: best_dump_points([[1, 2], [3]]), "counts is not an array"),
        (lambda: best_dump_points([["1"] * 52]), "counts holds <U1; it must hold whole numbers, 0 to 2"),
        (lambda: best_dump_points(np.full((1, 52), 3)), "hand 0 has 3 of AS"),
        (lambda: best_dump_points(np.full((1, 52), -1)), "hand 0 has -1 of AS"),
        (lambda: best_dump_points(np.full((1, 52), 1.5)), "hand 0 has 1.5 of AS; two decks have 0, 1 or 2"),
        (lambda: best_dump_points(np.full((1, 52), np.nan)), "hand 0 has nan of AS"),
    ],
)
def test_wrong_input_is_named(call: Any, message: str) -> None:
    """One clear error."""
    with pytest.raises(InputError, match=message) as raised:
        call()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("value", [0.5, "a", None, True, -1, 10**6 + 1, 10**9, float("nan")])
@pytest.mark.parametrize(
    "use",
    [
        lambda values: HandEvaluator(ARTICLE, values=values),
        lambda values: HandEvaluator(ARTICLE).best(values),
        lambda values: best_dump_points(np.zeros((1, 52), int), values=values),
    ],
    ids=["hand", "best", "batched"],
)
def test_values_are_whole_numbers(value: Any, use: Any) -> None:
    """Of every rank, by the same rule in all three places; the greatest that there may be are counted."""
    with pytest.raises(InputError, match=r"^values=.* is not valid; it must be 13 whole numbers, A to K, each 0 to 10"):
        use([*range(12), value])
    use(np.full(13, 10**6))


def test_the_greatest_values_do_not_overflow() -> None:
    """Of half the cards of two decks; whole numbers may stand in a float array."""
    counts = np.zeros((1, 52))
    counts[0, ::2] = 2.0
    hand = HandEvaluator([card for card in range(0, 52, 2) for _ in range(2)], values=[10**6] * 13)
    assert best_dump_points(counts, values=[10**6] * 13)[0] == hand.best().dump_points > 0


def test_jokers_come_and_go() -> None:
    """A joker ties the hand together; without it the islands are back."""
    hand = HandEvaluator(["3H", "4H", "9S"], jokers=True)
    wild = hand.add("*")
    assert (len(hand.islands), len(wild.islands)) == (2, 1)
    assert wild.best().dump == (read_card("9S"),)
    assert wild.add("5H").remove("*").best().dump_points == 9
    assert [island.cards for island in wild.remove("*").islands] == [island.cards for island in hand.islands]


def test_command_shows_grid_and_combos(capsys: pytest.CaptureFixture[str]) -> None:
    """The best combo first."""
    main(ARTICLE)
    shown = capsys.readouterr().out
    assert "15 cards, islands: 5" in shown
    assert "3 combos (maximal), best 39 points" in shown
    assert shown.index("3H 4H 5H ") < shown.index("3H 4H 5H 6H 7H")
    main(["3H", "4H", "5H"])
    assert "1 combo (maximal), best 0 points" in capsys.readouterr().out


@pytest.mark.parametrize("hand", [None, 5])
def test_no_hand_is_refused(hand: Any) -> None:
    """In one line, not by a traceback of what was tried with it."""
    with pytest.raises(InputError, match="a hand is a text or a list of cards"):
        HandEvaluator(hand)


@pytest.mark.parametrize("arguments", [["3H", "3H", "3H"], ["14H"], ["3H", "--level", "l2"], ["3H", "--top", "0"], []])
def test_command_refuses_wrong_input(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and one line."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_command_is_left_by_an_interrupt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a word, by the exit code of a command that was interrupted."""

    def stopped(self: HandEvaluator, level: str, method: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(HandEvaluator, "combos", stopped)
    with pytest.raises((SystemExit, KeyboardInterrupt)) as ended:
        main(ARTICLE)
    assert getattr(ended.value, "code", None) == 130
    assert capsys.readouterr() == ("", "")


HAND_A = "11C 3H 4H 11D 3D 5H 9D 2H 6H 3C 4H 3D 4D 5H 12D 3C"
"""The article's second hand."""


def test_the_articles_notation() -> None:
    """Ranks as numbers, suits as symbols, bars, commas, and no blanks at all."""
    names = ["JC", "QD", "KH", "AS", "TS", "3H"]
    assert [read_card(card) for card in ("11C", "12d", "13H", "1S", "10S", "3♥")] == [read_card(card) for card in names]
    assert HandEvaluator("3H | 4H | 5H").cards == HandEvaluator(["3♡", "4♥", "5♥\ufe0f"]).cards
    island = HandEvaluator("2H3H4H5H4H5H6H3C3C3D3D4D")
    assert len(island) == 12
    assert len(island.islands) == 1
    assert HandEvaluator("3H,*, 11d;joker", jokers=True).cards == (15, 36, JOKER, JOKER)
    assert [island.cards for island in HandEvaluator(HAND_A).islands if len(island.cards) == 12] == [island.cards]


def test_flag_map_and_lines_of_the_article() -> None:
    """The 3 of hearts is the control point; doubled hearts have two runs, the threes a set, and 4D is no meld's."""
    hand = HandEvaluator("2H3H4H5H4H5H6H3C3C3D3D4D")
    hearts = hand.flag_map[1, 1:6].tolist()
    assert hearts == [1, 1 | 4, 3, 3, 1]
    assert hand.flag_map[3, 2] == hand.flag_map[2, 2] == 4
    assert hand.flag_map.sum() == sum(hearts) + 8
    assert hand.lines == ([(1, 2, 6)], [3])
    assert hand.control_points == (read_card("3H"),)


def test_a_hand_as_a_picture() -> None:
    """A cell per card of the grid, a ring around each control point, the best combo's cards; jokers without rings."""
    svg = "{http://www.w3.org/2000/svg}"
    root = ET.fromstring(HandEvaluator(HAND_A)._repr_svg_())
    cells = [cell for cell in root.findall(f"{svg}rect") if cell.attrib["fill"] != "#ffffff"]
    assert len(cells) == len(set(HandEvaluator(HAND_A).cards))
    assert len(root.findall(f"{svg}circle")) == 1
    best = root.find(f"{svg}svg")
    assert len(best.findall(f"{svg}g")) >= 16
    wild = ET.fromstring(HandEvaluator(["3H", "4H", "*"], jokers=True)._repr_svg_())
    assert not wild.findall(f"{svg}circle")


def test_command_draws_flags_and_a_picture(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    """The article's own notation on the command line; what its map does not know is one line."""
    main([*HAND_A.split(), "--flags", "--svg", str(tmp_path / "hand.svg")])
    shown = capsys.readouterr().out
    assert "horizontal lines: H 2-6" in shown
    assert "00000101" in shown
    assert (tmp_path / "hand.svg").read_text().startswith("<svg")
    with pytest.raises(SystemExit, match="2"):
        main(["3H", "*", "--flags"])
    assert "do not support jokers" in capsys.readouterr().err
    picture = tmp_path / "missing" / "hand.svg"
    with pytest.raises(SystemExit, match="2"):
        main(["3H", "4H", "--svg", str(picture)])
    assert capsys.readouterr() == ("", f"error: --svg={picture} cannot be written: No such file or directory\n")
