"""The page in a real browser: rounds by clicks and by keys, advice, reviews, lost connections and hostile text.

With DREAM_SCREENSHOTS set to a folder, the pictures of the documentation are written there.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from page_contrast import check_contrast
from page_support import TOKEN, cut, served

import envs
from dream.page import opened, protocol, server
from dream.page.catalogue import Trained
from dream.page.hub import Hub
from dream.page.opened import Keeper
from dream.page.refusals import CODES
from envs import records

playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
_CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
pytestmark = pytest.mark.skipif(_CHROMIUM is None, reason="no Chromium is installed (apt-get install chromium)")
_PATIENCE = 120_000
_GAMES = {"gin_rummy": "heuristic", "gin_rummy_mdp": "heuristic", "gin_rummy_openspiel": "simple_bot",
          "mini_gin_rummy": "random", "rummy500": "greedy", "kuhn_poker": "random", "leduc_poker": "random",
          "liars_dice": "random", "phantom_ttt": "random"}  # fmt: skip
_READY = "#result, .actions button[data-kind], .hand .playable, #stock:not([disabled])"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Hub, pathlib.Path]]:
    """A server for the whole file; its hub, and the file that rounds are kept in."""
    kept = tmp_path_factory.mktemp("records") / "games.jsonl"
    with served(keeper=Keeper(kept)) as (hub, port):
        yield f"http://127.0.0.1:{port}/{TOKEN}/", hub, kept


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, without a window."""
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, address: tuple[str, Hub, pathlib.Path]) -> Iterator[Any]:
    """A fresh browser with the page open; an error on the page fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
    opened = context.new_page()
    opened.set_default_timeout(_PATIENCE)
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    opened.goto(address[0])
    opened.wait_for_selector("#start")
    yield opened
    context.close()
    assert not faults


def _deal(page: Any, game: str, player: str | None = None, target: str = "") -> None:
    if not page.is_checked(f'input[value="{game}"]'):
        page.check(f'input[value="{game}"]', force=True)
    seats = page.locator("select[name^=seat-]").count()
    for seat in range(1, seats):
        page.select_option(f"[name=seat-{seat}]", player or _GAMES[game])
    page.select_option("[name=target]", target)
    page.click("#start")
    page.wait_for_selector(_READY)


def _ply(page: Any) -> str:
    """Returns the round and the number of moves that are on the screen."""
    return page.locator(".felt").get_attribute("data-ply")


def _felt(page: Any) -> str:
    """Returns all that is drawn of the table."""
    return page.locator(".felt").inner_html()


def _settled(page: Any, before: str) -> None:
    """Waits until another move is on the screen and it is the person's turn, or the round is over."""
    page.wait_for_selector(f'.felt:not([data-ply="{before}"]) :is({_READY})', state="attached")


def _click_a_move(page: Any) -> None:
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


def _press_a_move(page: Any) -> None:
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


def _play(page: Any, move: Any) -> None:
    for _ in range(400):
        if page.locator("#result").count():
            return
        before = _ply(page)
        move(page)
        _settled(page, before)
    pytest.fail("the round does not end")


@pytest.mark.parametrize("move", [_click_a_move, _press_a_move], ids=["clicks", "keys"])
@pytest.mark.parametrize("game", _GAMES)
def test_a_whole_round(page: Any, game: str, move: Any) -> None:
    """Of each game, by mouse alone and by keys alone; then the next one is dealt."""
    _deal(page, game)
    _play(page, move)
    assert page.locator("#result h2").inner_text()
    if move is _press_a_move:
        page.keyboard.press("n")
    else:
        page.click("#next")
    page.wait_for_selector(".round >> text=Round 2")


def test_a_card_can_be_dragged(page: Any) -> None:
    """From the hand to the discards."""
    _deal(page, "mini_gin_rummy")
    while not page.locator(".hand .playable").count():
        before = _ply(page)
        page.locator("#stock:not([disabled]), .actions button").first.click()
        _settled(page, before)
    card, pile = page.locator(".hand .playable").first, page.locator("#pile")
    name, before = card.get_attribute("data-card"), _ply(page)
    card.drag_to(pile)
    _settled(page, before)
    rank = name[0].replace("T", "10")
    assert page.locator(f".moves li.mine >> text=You discard {rank}").count()


def test_a_hint_and_a_belief(page: Any) -> None:
    """The probabilities come first, then expected points with their intervals; what is hidden adds up."""
    _deal(page, "kuhn_poker")
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
    _deal(page, game)
    while not page.locator("#result").count():
        page.keyboard.press("b")
        page.wait_for_selector("#belief-note")
        assert page.locator(".cell.true").count() == 0
        before = _ply(page)
        _click_a_move(page)
        _settled(page, before)
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
    _deal(page, "gin_rummy")
    while not page.locator(".hand .playable").count():
        before = _ply(page)
        page.locator("#stock:not([disabled]), .actions button[data-kind]").first.click()
        _settled(page, before)
    page.keyboard.press("h")
    page.wait_for_selector(".interval")
    assert page.locator(".rows tbody tr").count() >= 10
    page.keyboard.press("b")
    page.wait_for_selector("#belief-note")
    assert page.locator(".map td.cell").count() == 52
    assert page.locator(".map td.own").count() == 11
    assert page.locator("h3 >> text=/^Outs: .* to improve/").count() == 1
    assert page.locator("#danger .cell").count() == 11


def test_a_review(page: Any) -> None:
    """Step by step, by keys too; and on from the first move with a new game."""
    _deal(page, "leduc_poker")
    _play(page, _click_a_move)
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
    _play(page, _click_a_move)


def test_a_trained_opponent_reviews(
    page: Any, address: tuple[str, Hub, pathlib.Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A game against one's own run is seen as that run sees it; another advisor can be chosen, at the same move."""
    catalogue = address[1].catalogue
    monkeypatch.setattr(catalogue, "trained", [Trained("my_run", "random", envs.make("leduc_poker"))])
    page.reload()
    _deal(page, "leduc_poker", "my_run")
    _play(page, _click_a_move)
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
    _deal(page, "kuhn_poker")
    _play(page, _click_a_move)
    page.click("#next")
    page.wait_for_selector(".round >> text=Round 2")
    page.wait_for_selector(_READY)
    felt = _felt(page)
    assert page.locator("#finished button").count() == 1
    page.click("#finished button")
    page.wait_for_selector("#review-progress >> text=Every move")
    assert "Round 1" in page.locator(".scores").inner_text()
    page.click("#leave-review")
    assert _felt(page) == felt
    _play(page, _click_a_move)
    assert page.locator("#finished button").count() == 2


def test_a_rummy_match_shows_its_totals(
    page: Any, address: tuple[str, Hub, pathlib.Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the rules of a run that plays to a target: in play, and with the settlement of the last round."""
    game = envs.make("rummy500", num_players=2, hand_size=5, max_turns=12, target=500, max_rounds=2)
    monkeypatch.setattr(address[1].catalogue, "trained", [Trained("long", "greedy", game)])
    page.reload()
    page.check('input[value="rummy500"]', force=True)
    page.select_option("[name=variant]", label="rules of long")
    _deal(page, "rummy500", "long")
    assert page.locator("#carried").inner_text() == "After 0 rounds of a match to 500: You 0, long 0"
    _play(page, _click_a_move)
    assert page.locator("#carried").inner_text().startswith("After 2 rounds of a match to 500: You ")
    assert page.locator(".sum-line").count() == 3


def test_a_reload_in_mid_game_goes_on(page: Any) -> None:
    """The address names the match, and the browser who it is."""
    _deal(page, "leduc_poker")
    hand, moves = page.locator("[data-own]").get_attribute("data-own"), page.locator(".moves li").count()
    page.reload()
    page.wait_for_selector(_READY)
    assert page.locator("[data-own]").get_attribute("data-own") == hand
    assert page.locator(".moves li").count() == moves
    page.click("#home")
    page.wait_for_selector(".matches >> text=Leduc poker")
    page.click(".matches button >> text=Go on")
    page.wait_for_selector("[data-own]")


def test_two_tabs(page: Any, address: tuple[str, Hub, pathlib.Path]) -> None:
    """What is done in one is seen in the other."""
    _deal(page, "leduc_poker")
    other = page.context.new_page()
    other.set_default_timeout(_PATIENCE)
    other.goto(page.url)
    other.wait_for_selector(_READY)
    assert _felt(other) == _felt(page)
    before = _ply(other)
    _click_a_move(page)
    _settled(other, before)
    _settled(page, before)


def test_a_lost_connection_is_made_again(
    page: Any, address: tuple[str, Hub, pathlib.Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says so, connects again as soon as it can, and the game goes on where it was."""
    _deal(page, "leduc_poker")
    before, felt = _ply(page), _felt(page)
    with monkeypatch.context() as down:
        down.setattr(server, "MOST_CONNECTIONS", 0)
        cut(address[1])
        page.wait_for_selector("#link >> text=lost")
        assert _felt(page) == felt
    page.wait_for_selector("body[data-link=open]", state="attached")
    assert page.locator("#link").inner_text() == ""
    assert _felt(page) == felt
    _click_a_move(page)
    _settled(page, before)


def test_an_illegal_message_is_refused(page: Any) -> None:
    """Sent by a script that knows the token: an error, and the table is as it was."""
    _deal(page, "kuhn_poker")
    felt, name = _felt(page), page.evaluate("new URLSearchParams(location.hash.slice(1)).get('match')")
    answers = page.evaluate(
        """async (name) => {
          const socket = new WebSocket(new URL('socket', location.href.split('#')[0]).href.replace('http', 'ws'));
          const answers = [];
          await new Promise((done) => { socket.onopen = done; });
          const ask = (message) => new Promise((done) => {
            socket.onmessage = (event) => done(JSON.parse(event.data));
            socket.send(message);
          });
          answers.push(await ask('{"type":"act","match":"' + name + '","round":0,"ply":0,"action":0}'));
          await ask(JSON.stringify({ type: 'hello', key: localStorage.getItem('dream.key') }));
          answers.push(await ask('{"type":"act","match":"' + name + '","round":0,"ply":0,"action":77}'));
          answers.push(await ask('{"type":"new","game":"../x","variant":"","seats":[null],"target":null,"pace":0}'));
          answers.push(await ask('not json'));
          return answers;
        }""",
        name,
    )  # fmt: skip
    assert [answer["type"] for answer in answers] == ["error"] * 4
    assert _felt(page) == felt


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
    """It is marked in the list; who asks for it is told why, and stays where it was. A file too large is not sent."""
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


def test_rounds_with_a_person_are_kept(page: Any, address: tuple[str, Hub, pathlib.Path]) -> None:
    """Hand by hand, each a record that can be replayed."""
    before = len(address[2].read_text().splitlines()) if address[2].exists() else 0
    _deal(page, "kuhn_poker")
    _play(page, _click_a_move)
    kept = address[2].read_text().splitlines()
    assert len(kept) == before + 1
    last = json.loads(kept[-1])
    assert sorted(last["players"]) == ["person", "random"]
    assert records.replay(records.parse(kept[-1])[0])


def test_players_play_each_other(page: Any) -> None:
    """At a pace, stopped and started again, between two rounds too; both hands are open."""
    page.check('input[value="kuhn_poker"]', force=True)
    page.select_option("[name=seat-0]", "random")
    page.select_option("[name=pace]", "0.5")
    page.click("#start")
    page.wait_for_selector(".open-hand")
    assert page.locator(".open-hand").count() == 2
    page.click("#pause")
    page.wait_for_selector("#pause >> text=Go on")
    page.click("#pause")
    page.wait_for_selector(".felt:has(#result) #pause")
    page.wait_for_selector(".round >> text=Round 2")


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_it_fits_the_screen_and_all_has_names(page: Any, width: int) -> None:
    """Nothing sticks out to the side from a phone up; every control has a name."""
    page.set_viewport_size({"width": width, "height": 780})
    for step in ("lobby", "table"):
        if step == "table":
            _deal(page, "gin_rummy")
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
    _deal(page, "mini_gin_rummy")
    for key, done in (("h", "#hint-note >> text=512 deals"), ("b", "#belief-note")):
        page.keyboard.press(key)
        page.wait_for_selector(done)
        check_contrast(page)
    page.evaluate("document.querySelectorAll('.cell').forEach((one) => one.style.setProperty('--chance', 1))")
    page.locator("#side-panel .cell").evaluate_all("(all) => all.forEach((one) => { one.className = 'cell'; })")
    check_contrast(page)
    _play(page, _click_a_move)
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
    page.wait_for_selector(_READY)
    assert page.evaluate(focus) == "hand"
    while not page.locator("#result").count():
        before = _ply(page)
        page.keyboard.press("d")
        assert _ply(page) == before
        discards = page.locator(".hand .playable").count()
        _press_a_move(page)
        _settled(page, before)
        assert page.evaluate(focus) == ("result" if page.locator("#result").count() else "hand") or not discards
        assert page.evaluate("document.activeElement !== document.body")
    page.keyboard.press("n")
    page.wait_for_selector(".round >> text=Round 2")
    page.wait_for_selector(_READY)  # the other moves first, and may end the round at once
    assert page.evaluate(focus) == ("result" if page.locator("#result").count() else "hand")
    page.click("#home")
    _deal(page, "kuhn_poker")
    assert page.evaluate(focus) == "status"


@pytest.mark.parametrize(("motion", "moves"), [("reduce", False), ("no-preference", True)])
def test_reduced_motion(page: Any, motion: str, moves: bool) -> None:
    """Nothing is animated for who asks for it; else cards are."""
    page.emulate_media(reduced_motion=motion)
    _deal(page, "mini_gin_rummy")
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

    _deal(page, "gin_rummy", "heuristic", "100")
    for _ in range(8):
        before = _ply(page)
        _click_a_move(page)
        _settled(page, before)
    while not page.locator(".hand .playable").count() and not page.locator("#next").count():
        before = _ply(page)
        _click_a_move(page)
        _settled(page, before)
    if not page.locator("#next").count():
        page.keyboard.press("b")
        page.wait_for_selector("#belief-note")
        picture("beliefs")
    _play(page, _click_a_move)
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
    page.wait_for_selector(_READY)
    picture("phone")
