"""Moves of a person on the page, in a browser: by clicks and by keys."""

from __future__ import annotations

from typing import Any

import pytest

SLOWEST = 120_000
"""Milliseconds that anything on the page may take."""
GAMES = {"gin_rummy": "heuristic", "gin_rummy_mdp": "heuristic", "gin_rummy_openspiel": "simple_bot",
         "mini_gin_rummy": "random", "rummy500": "greedy", "kuhn_poker": "random", "leduc_poker": "random",
         "liars_dice": "random", "phantom_ttt": "random"}  # fmt: skip
"""Game -> an opponent that answers at once."""
READY = "#result, .actions button[data-kind], .hand .playable, #stock:not([disabled])"
"""What is there when the person may act, or the round is over."""


def deal(page: Any, game: str, player: str | None = None, target: str = "") -> None:
    """Begins a match against players of one name, the usual one of the game by default."""
    if not page.is_checked(f'input[value="{game}"]'):
        page.check(f'input[value="{game}"]', force=True)
    seats = page.locator("select[name^=seat-]").count()
    for seat in range(1, seats):
        page.select_option(f"[name=seat-{seat}]", player or GAMES[game])
    page.select_option("[name=target]", target)
    page.click("#start")
    page.wait_for_selector(READY)


def ply(page: Any) -> str:
    """Returns the round and the number of moves that are on the screen."""
    return page.locator(".felt").get_attribute("data-ply")


def drawn(page: Any) -> str:
    """Returns all that is drawn of the table."""
    return page.locator(".felt").inner_html()


def settled(page: Any, before: str) -> None:
    """Waits until another move is on the screen and it is the person's turn, or the round is over."""
    page.wait_for_selector(f'.felt:not([data-ply="{before}"]) :is({READY})', state="attached")


def click_a_move(page: Any) -> None:
    """Plays something sensible by mouse."""
    ends = page.locator(".actions .accent, .actions [data-kind=lay], .actions [data-kind=layoff]")
    cards = page.locator(".hand .playable:not(.in-meld)")
    if ends.count():
        ends.first.click()
    elif page.locator(".hand .playable").count():
        (cards if cards.count() else page.locator(".hand .playable")).last.click()
        page.locator("#pile .card").last.click()
    elif page.locator("#stock:not([disabled])").count():
        page.click("#stock")
    else:
        page.locator(".actions button[data-kind]").last.click()


def press_a_move(page: Any) -> None:
    """Plays something sensible by keys."""
    if page.locator(".actions [data-kind=knock], .actions [data-kind=gin]").count():
        page.keyboard.press("k")
    elif page.locator(".hand .playable").count() and not page.locator(".actions [data-kind=lay]").count():
        page.locator('.hand [tabindex="0"]').focus()
        page.keyboard.press("End")
        for _ in range(page.locator(".hand .card").count()):
            if page.locator(".hand .playable:focus").count():
                break
            page.keyboard.press("ArrowLeft")
        page.keyboard.press("Enter")
        page.keyboard.press("d")
    elif page.locator("#stock:not([disabled])").count():
        page.keyboard.press("s")
    else:
        page.keyboard.press(str(min(page.locator(".actions button").count(), 9)))


def play(page: Any, move: Any) -> None:
    """Plays a round to its end by `move`."""
    for _ in range(400):
        if page.locator("#result").count():
            return
        before = ply(page)
        move(page)
        settled(page, before)
    pytest.fail("the round does not end")
