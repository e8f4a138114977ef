"""Hints, beliefs and the truth after the round, in the browser."""

from __future__ import annotations

from typing import Any

import pytest
from page_moves import click_a_move, deal, ply, settled


def test_a_hint_and_a_belief(page: Any) -> None:
    """The probabilities come first, then expected points with their intervals; what is hidden adds up."""
    deal(page, "kuhn_poker")
    page.keyboard.press("h")
    page.wait_for_selector(".interval")
    assert page.locator(".rows tbody tr").count() == 2
    page.wait_for_selector("#hint-note >> text=512 deals")
    page.keyboard.press("b")
    page.wait_for_selector("#belief-note")
    shares = [int(text.split()[1]) for text in page.locator(".chips .cell").all_inner_texts() if "%" in text]
    assert sum(shares) == pytest.approx(100, abs=2)


@pytest.mark.parametrize("game", ["kuhn_poker", "mini_gin_rummy"])
def test_the_truth_is_ringed_on_the_last_belief(page: Any, game: str) -> None:
    """Once the round is over, and not before; the next round begins without it."""
    deal(page, game)
    while not page.locator("#result").count():
        page.keyboard.press("b")
        page.wait_for_selector("#belief-note")
        assert page.locator(".cell.true").count() == 0
        before = ply(page)
        click_a_move(page)
        settled(page, before)
    deck = {"kuhn_poker": "JQK", "mini_gin_rummy": "A234"}[game]
    rings = page.locator(".cell.true").all_inner_texts()
    held = page.locator(".open-hand").nth(1).locator(".card").count()
    assert rings
    assert len(rings) == held
    assert all(text[0] in deck for text in rings)
    page.click("#next")
    page.wait_for_selector(".round >> text=Round 2")
    assert page.locator(".cell").count() == 0


def test_a_hint_and_a_belief_in_gin(page: Any) -> None:
    """Of a discard: expected points, a map of all 52 cards with the own ones marked, outs, the danger of each card."""
    deal(page, "gin_rummy")
    while not page.locator(".hand .playable").count():
        before = ply(page)
        page.locator("#stock:not([disabled]), .actions button[data-kind]").first.click()
        settled(page, before)
    page.keyboard.press("h")
    page.wait_for_selector(".interval")
    assert page.locator(".rows tbody tr").count() >= 10
    page.keyboard.press("b")
    page.wait_for_selector("#belief-note")
    assert page.locator(".map td.cell").count() == 52
    assert page.locator(".map td.own").count() == 11
    assert page.locator("h3 >> text=/^Outs: .* to improve/").count() == 1
    assert page.locator("#danger .cell").count() == 11
