"""Words, sizes, contrast, focus and motion of the page; with DREAM_SCREENSHOTS set to a folder, the docs' pictures."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import pytest
from page_contrast import check_contrast
from page_moves import READY, click_a_move, deal, play, ply, press_a_move, settled

from dream.page.refusals import CODES


def test_every_code_and_name_is_a_sentence(page: Any) -> None:
    """Nothing is left unfilled; a game that the page does not know goes by its own name."""
    params = {code: dict.fromkeys(names, "kuhn_poker") for code, names in CODES.items()}
    said = page.evaluate(
        """async (params) => {
          const strings = await import(new URL('strings.js', location.href.split('#')[0]).href);
          const errors = Object.entries(params).map(([code, given]) => strings.errorText({ code, params: given }));
          const tables = ['house_rules', 'constructor'].map((game) => ({ game, variant: 'standard' }));
          return [errors, tables.map(strings.tableText)];
        }""",
        params,
    )
    assert len(set(said[0])) == len(CODES)
    assert not [text for text in said[0] if text in CODES or "undefined" in text]
    assert said[1] == ["House rules · standard", "Constructor · standard"]


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_it_fits_the_screen_and_all_has_names(page: Any, width: int) -> None:
    """Nothing sticks out to the side from a phone up; every control has a name."""
    page.set_viewport_size({"width": width, "height": 780})
    for step in ("lobby", "table"):
        if step == "table":
            deal(page, "gin_rummy")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        nameless = page.evaluate(
            """[...document.querySelectorAll('button, select, input, img')]
              .filter((one) => !one.getAttribute('aria-label') && !one.textContent.trim())
              .filter((one) => !one.labels?.length && !one.hasAttribute('alt')).map((one) => one.outerHTML)"""
        )
        assert nameless == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_contrast(page: Any, theme: str) -> None:
    """In the lobby, at the table, with a hint, a belief and its truth, in the result and in a review."""
    page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
    check_contrast(page)
    deal(page, "mini_gin_rummy")
    for key, done in (("h", "#hint-note >> text=512 deals"), ("b", "#belief-note")):
        page.keyboard.press(key)
        page.wait_for_selector(done)
        check_contrast(page)
    page.evaluate("document.querySelectorAll('.cell').forEach((one) => one.style.setProperty('--chance', 1))")
    page.locator("#side-panel .cell").evaluate_all("(all) => all.forEach((one) => { one.className = 'cell'; })")
    check_contrast(page)
    play(page, click_a_move)
    page.evaluate("document.querySelectorAll('.open-hand small').forEach((one) => { one.className = 'lost'; })")
    check_contrast(page)
    page.click("#review")
    page.wait_for_selector("#review-progress >> text=Every move")
    assert page.locator(".played small").count()
    check_contrast(page)


def test_the_focus_is_never_lost(page: Any) -> None:
    """It is in the hand after the deal and after a discard by keys, on the result after the round; on no card."""
    focus = "document.activeElement.id || document.activeElement.className"
    page.check('input[value="mini_gin_rummy"]', force=True)
    page.select_option("[name=seat-1]", "random")
    page.focus("#start")
    page.keyboard.press("Enter")
    page.wait_for_selector(READY)
    assert page.evaluate(focus) == "hand"
    while not page.locator("#result").count():
        before = ply(page)
        page.keyboard.press("d")
        assert ply(page) == before
        discards = page.locator(".hand .playable").count()
        press_a_move(page)
        settled(page, before)
        assert page.evaluate(focus) == ("result" if page.locator("#result").count() else "hand") or not discards
        assert page.evaluate("document.activeElement !== document.body")
    page.keyboard.press("n")
    page.wait_for_selector(".round >> text=Round 2")
    page.wait_for_selector(READY)  # the other moves first, and may end the round at once
    assert page.evaluate(focus) == ("result" if page.locator("#result").count() else "hand")
    page.click("#home")
    deal(page, "kuhn_poker")
    assert page.evaluate(focus) == "status"


@pytest.mark.parametrize(("motion", "moves"), [("reduce", False), ("no-preference", True)])
def test_reduced_motion(page: Any, motion: str, moves: bool) -> None:
    """Nothing is animated for who asks for it; else cards are."""
    page.emulate_media(reduced_motion=motion)
    deal(page, "mini_gin_rummy")
    found = page.evaluate(
        """[...document.querySelectorAll('*')].map((one) => getComputedStyle(one)).some((style) =>
          (style.transitionProperty !== 'none' && /[1-9]/.test(style.transitionDuration)) ||
          (style.animationName !== 'none' && /[1-9]/.test(style.animationDuration)))"""
    )
    assert found == moves


@pytest.mark.skipif("DREAM_SCREENSHOTS" not in os.environ, reason="DREAM_SCREENSHOTS names no folder for pictures")
def test_pictures_for_the_documentation(page: Any) -> None:
    """The table with beliefs, a knock settled, a review, a phone."""
    folder = pathlib.Path(os.environ["DREAM_SCREENSHOTS"])

    def picture(name: str) -> None:
        page.wait_for_timeout(300)
        page.screenshot(path=folder / f"play_{name}.jpg", type="jpeg", quality=72)

    deal(page, "gin_rummy", "heuristic", "100")
    for _ in range(8):
        before = ply(page)
        click_a_move(page)
        settled(page, before)
    while not page.locator(".hand .playable").count() and not page.locator("#next").count():
        before = ply(page)
        click_a_move(page)
        settled(page, before)
    if not page.locator("#next").count():
        page.keyboard.press("b")
        page.wait_for_selector("#belief-note")
        picture("beliefs")
    play(page, click_a_move)
    page.wait_for_selector("#result")
    picture("settled")
    page.click("#review")
    page.wait_for_selector("#review-progress >> text=Every move", timeout=600_000)
    if page.locator("#worst button").count():
        page.locator("#worst button").first.click()
    picture("review")
    page.click("#leave-review")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.set_viewport_size({"width": 400, "height": 860})
    page.click("#next")
    page.wait_for_selector(READY)
    picture("phone")
