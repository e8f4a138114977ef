"""Reviews in the browser: of rounds just played, and of files, hostile ones among them."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
from page_contrast import check_contrast
from page_moves import READY, click_a_move, deal, drawn, play

import envs
from dream.page import opened, protocol
from dream.page.catalogue import Trained
from dream.page.hub import Hub
from envs import records


def test_a_review(page: Any) -> None:
    """Step by step, by keys too; and on from the first move with a new game."""
    deal(page, "leduc_poker")
    play(page, click_a_move)
    page.click("#review")
    page.wait_for_selector("#review-progress >> text=Every move")
    page.click("#first")
    first = page.locator("#step-text").inner_text()
    assert page.locator(".rows tbody tr").count() >= 2
    page.keyboard.press("ArrowRight")
    assert page.locator("#step-text").inner_text() != first
    page.keyboard.press("End")
    assert page.locator("#step-text").inner_text() == "The round is over."
    page.click("#first")
    page.click("#branch")
    page.wait_for_selector("#status >> text=Your turn")
    play(page, click_a_move)


def test_a_trained_opponent_reviews(
    page: Any, address: tuple[str, Hub, pathlib.Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A game against one's own run is seen as that run sees it; another advisor can be chosen, at the same move."""
    catalogue = address[1].catalogue
    monkeypatch.setattr(catalogue, "trained", [Trained("my_run", "random", envs.make("leduc_poker"))])
    page.reload()
    deal(page, "leduc_poker", "my_run")
    play(page, click_a_move)
    page.click("#review")
    page.wait_for_selector("#review-progress >> text=Every move as my_run sees it")
    page.keyboard.press("ArrowRight")
    move = page.locator("#step-text").inner_text()
    assert page.locator("#review-advisor option").all_inner_texts() == catalogue.players(envs.make("leduc_poker"))
    page.select_option("#review-advisor", "random")
    page.wait_for_selector("#review-progress >> text=Every move as random sees it")
    assert page.locator("#step-text").inner_text() == move


def test_an_earlier_round_can_be_reviewed(page: Any) -> None:
    """While the next one is under way, which stays as it is."""
    deal(page, "kuhn_poker")
    play(page, click_a_move)
    page.click("#next")
    page.wait_for_selector(".round >> text=Round 2")
    page.wait_for_selector(READY)
    felt = drawn(page)
    assert page.locator("#finished button").count() == 1
    page.click("#finished button")
    page.wait_for_selector("#review-progress >> text=Every move")
    assert "Round 1" in page.locator(".scores").inner_text()
    page.click("#leave-review")
    assert drawn(page) == felt
    play(page, click_a_move)
    assert page.locator("#finished button").count() == 2


def test_hostile_text_in_a_record_is_text(page: Any, tmp_path: pathlib.Path) -> None:
    """A player's name that would be a script is shown letter by letter, and nothing runs."""
    game = envs.make("kuhn_poker")
    hostile = "<img src=x onerror=alert(1)>"
    made = records.record(game, [2, 0, 1], [1, 1], [hostile, "</script><b>bold</b>"])
    path = tmp_path / "game.jsonl"
    path.write_text(records.to_line(made))
    page.set_input_files("#record", path)
    page.wait_for_selector("#review-progress >> text=Every move")
    assert hostile in page.locator(".scores").inner_text()
    assert page.locator("#app img, #app b >> text=bold").count() == 0
    path.write_text('{"format": 2, "game": "<script>"}\n')
    page.click("#home")
    page.set_input_files("#record", path)
    page.wait_for_selector("#toast:not([hidden])")
    assert page.locator("#toast script").count() == 0


def _kuhn_line(actions: list[int], names: list[str]) -> str:
    return records.to_line(records.record(envs.make("kuhn_poker"), [2, 0, 1], actions, names))


def test_every_round_of_a_file_can_be_reviewed(page: Any, tmp_path: pathlib.Path) -> None:
    """By a list of them, each with its own players; after a reload too."""
    path = tmp_path / "games.jsonl"
    path.write_text(_kuhn_line([1, 1], ["anna", "bo"]) + _kuhn_line([0, 0], ["bo", "anna"]) * 2)
    page.set_input_files("#record", path)
    page.wait_for_selector("#review-progress >> text=Every move")
    assert page.locator("#review-held").inner_text() == "The file holds 3 rounds."
    rounds = page.locator("#review-round option").all_inner_texts()
    assert rounds[:2] == ["Round 1: anna +2, bo −2", "Round 2: bo +1, anna −1"]
    page.focus("#review-round")
    page.select_option("#review-round", "1")
    page.wait_for_selector(".scores >> text=Round 2 · bo – anna")
    assert page.locator("#step-text").inner_text() == "bo checks"
    assert page.evaluate("document.activeElement.id") == "review-round"
    page.reload()
    page.wait_for_selector("#review-round")
    assert page.locator("#review-round option").all_inner_texts() == rounds


def _is_at_round(page: Any, number: int, first: str) -> None:
    """Waits for the review of a round, whose players are anna and bo."""
    page.wait_for_selector(f".scores >> text=Round {number} · {first}")
    assert page.input_value("#review-jump") == str(number)
    assert page.input_value("#review-round") == str(number - 1)


def test_every_round_of_a_large_file_is_reached(page: Any, tmp_path: pathlib.Path) -> None:
    """By its number, by the next and the one before, and by the list of those near it; the focus stays."""
    path = tmp_path / "games.jsonl"
    names = ["anna, whose name is as long as it may be 🂡", "bo"]
    odd, even = _kuhn_line([1, 1], names), _kuhn_line([0, 0], names[::-1])
    path.write_text((odd + even) * 1000)
    assert path.stat().st_size > protocol.MOST_PART_BYTES
    page.set_input_files("#record", path)
    page.wait_for_selector("#review-held >> text=The file holds 2000 rounds.")
    assert page.locator("#previous-round").is_disabled()
    page.fill("#review-jump", "1999")
    page.press("#review-jump", "Enter")
    _is_at_round(page, 1999, "anna")
    page.wait_for_selector("#review-progress >> text=Every move")
    assert page.evaluate("document.activeElement.id") == "review-jump"
    lines = page.locator("#review-round option").all_inner_texts()
    assert (len(lines), lines[-1].split(":")[0]) == (opened.LISTED, "Round 2000")
    page.click("#next-round")
    _is_at_round(page, 2000, "bo")
    assert page.locator("#next-round").is_disabled()
    assert page.evaluate("document.activeElement.id") == "review-jump"
    page.fill("#review-jump", "2001")
    page.click("#review-go")
    assert not page.evaluate("document.querySelector('#review-jump').validity.valid")
    page.click("#previous-round")
    _is_at_round(page, 1999, "anna")
    page.select_option("#review-round", "1959")
    _is_at_round(page, 1960, "bo")
    check_contrast(page)
    page.set_viewport_size({"width": 360, "height": 780})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.reload()
    _is_at_round(page, 1960, "bo")
    page.click("#branch")
    page.wait_for_selector("#status >> text=Your turn")


def test_a_round_that_cannot_be_read_leaves_the_others(page: Any, tmp_path: pathlib.Path) -> None:
    """It is marked in the list; asking for it shows the reason and changes nothing. A file too large is not sent."""
    path = tmp_path / "games.json"
    good = json.loads(_kuhn_line([1, 1], ["anna", "bo"]))
    path.write_text(json.dumps([good, good | {"deal": "x"}, good]))
    page.set_input_files("#record", path)
    page.wait_for_selector("#review-progress >> text=Every move")
    assert page.locator("#review-round option").all_inner_texts()[1] == "Round 2: cannot be read"
    page.click("#next-round")
    page.wait_for_selector("#toast >> text=file, record 2: deal is")
    _is_at_round(page, 1, "anna")
    page.fill("#review-jump", "3")
    page.click("#review-go")
    _is_at_round(page, 3, "anna")
    page.click("#home")
    page.wait_for_selector(".matches >> text=The file holds 3 rounds.")
    path.write_text(" " * (opened.MOST_CHARACTERS + 1))
    page.set_input_files("#record", path)
    page.wait_for_selector(f"#toast >> text=it may have {opened.MOST_CHARACTERS}")
