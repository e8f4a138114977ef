"""Rounds played in the browser by clicks and by keys, in several tabs, over lost connections; what is kept of them."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
from page_moves import GAMES, READY, SLOWEST, click_a_move, deal, drawn, play, ply, press_a_move, settled
from page_support import cut

import envs
from dream.page import server
from dream.page.catalogue import Trained
from dream.page.hub import Hub
from envs import records


@pytest.mark.parametrize("move", [click_a_move, press_a_move], ids=["clicks", "keys"])
@pytest.mark.parametrize("game", GAMES)
def test_a_whole_round(page: Any, game: str, move: Any) -> None:
    """Of each game, by mouse alone and by keys alone; then the next one is dealt."""
    deal(page, game)
    play(page, move)
    assert page.locator("#result h2").inner_text()
    if move is press_a_move:
        page.keyboard.press("n")
    else:
        page.click("#next")
    page.wait_for_selector(".round >> text=Round 2")


def test_a_level_is_an_opponent(page: Any) -> None:
    """Chosen by its number, and called by it at the table; of games without levels there are none to choose."""
    deal(page, "gin_rummy", "level:2")
    assert page.locator(".seat-name, .who").filter(has_text="Level 2").count()
    page.click("#home")
    page.check('input[value="kuhn_poker"]', force=True)
    assert not page.locator("[name=seat-1] optgroup").count()


def test_a_card_can_be_dragged(page: Any) -> None:
    """From the hand to the discards."""
    deal(page, "mini_gin_rummy")
    while not page.locator(".hand .playable").count():
        before = ply(page)
        page.locator("#stock:not([disabled]), .actions button").first.click()
        settled(page, before)
    card, pile = page.locator(".hand .playable").first, page.locator("#pile")
    name, before = card.get_attribute("data-card"), ply(page)
    card.drag_to(pile)
    settled(page, before)
    rank = name[0].replace("T", "10")
    assert page.locator(f".moves li.mine >> text=You discard {rank}").count()


@pytest.fixture
def rummy_match(address: tuple[str, Hub, pathlib.Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules of a run called long, which plays two short rounds of rummy 500 as one game."""
    game = envs.make("rummy500", num_players=2, hand_size=5, max_turns=12, target=500, max_rounds=2)
    monkeypatch.setattr(address[1].catalogue, "trained", [Trained("long", "greedy", game)])


def deal_a_rummy_match(page: Any) -> None:
    """Begins it against the run."""
    page.reload()
    page.check('input[value="rummy500"]', force=True)
    page.select_option("[name=variant]", label="rules of long")
    deal(page, "rummy500", "long")


@pytest.mark.usefixtures("rummy_match")
def test_a_rummy_match_shows_its_totals(page: Any) -> None:
    """By the rules of a run that plays to a target: in play, and with the settlement of the last round."""
    deal_a_rummy_match(page)
    assert page.locator("#carried").inner_text() == "After 0 rounds of a match to 500: You 0, long 0"
    play(page, click_a_move)
    assert page.locator("#carried").inner_text().startswith("After 2 rounds of a match to 500: You ")
    assert page.locator(".sum-line").count() == 3


@pytest.mark.usefixtures("rummy_match")
def test_a_card_chosen_before_a_new_deal_is_not_chosen_after_it(page: Any) -> None:
    """Within a match that is one game the same card may be dealt again: one click must not discard it."""
    shown: list[dict[str, Any]] = []
    sockets: list[Any] = []

    def overhear(socket: Any) -> None:
        sockets.append(socket)
        from_server = socket.connect_to_server()

        def pass_on(text: str) -> None:
            shown.extend([message] if (message := json.loads(text))["type"] == "match" else [])
            socket.send(text)

        from_server.on_message(pass_on)

    page.route_web_socket("**/socket", overhear)
    deal_a_rummy_match(page)
    while not page.locator(".hand .playable").count():
        before = ply(page)
        page.locator("#stock:not([disabled]), .actions button").first.click()
        settled(page, before)
    page.locator(".hand .playable").last.click()
    chosen = page.locator('.hand [aria-pressed="true"]')
    assert chosen.count() == 1
    for rounds, expected in ((0, 1), (1, 0)):
        before, message = ply(page), shown[-1]
        message["match"]["ply"] += 1
        message["match"]["board"]["carried"]["rounds"] = rounds
        sockets[-1].send(json.dumps(message))
        settled(page, before)
        assert chosen.count() == expected


def test_a_reload_in_mid_game_goes_on(page: Any) -> None:
    """The address names the match, and the browser who it is."""
    deal(page, "leduc_poker")
    hand, moves = page.locator("[data-own]").get_attribute("data-own"), page.locator(".moves li").count()
    page.reload()
    page.wait_for_selector(READY)
    assert page.locator("[data-own]").get_attribute("data-own") == hand
    assert page.locator(".moves li").count() == moves
    page.click("#home")
    page.wait_for_selector(".matches >> text=Leduc poker")
    page.click(".matches button >> text=Go on")
    page.wait_for_selector("[data-own]")


def test_two_tabs(page: Any, address: tuple[str, Hub, pathlib.Path]) -> None:
    """What is done in one is seen in the other."""
    deal(page, "leduc_poker")
    other = page.context.new_page()
    other.set_default_timeout(SLOWEST)
    other.goto(page.url)
    other.wait_for_selector(READY)
    assert drawn(other) == drawn(page)
    before = ply(other)
    click_a_move(page)
    settled(other, before)
    settled(page, before)


def test_a_lost_connection_is_made_again(
    page: Any, address: tuple[str, Hub, pathlib.Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says so, connects again as soon as it can, and the game goes on where it was."""
    deal(page, "leduc_poker")
    before, felt = ply(page), drawn(page)
    with monkeypatch.context() as down:
        down.setattr(server, "MOST_CONNECTIONS", 0)
        cut(address[1])
        page.wait_for_selector("#link >> text=lost")
        assert drawn(page) == felt
    page.wait_for_selector("body[data-link=open]", state="attached")
    assert page.locator("#link").inner_text() == ""
    assert drawn(page) == felt
    click_a_move(page)
    settled(page, before)


def test_an_illegal_message_is_refused(page: Any) -> None:
    """Sent by a script that knows the token: an error, and the table is as it was."""
    deal(page, "kuhn_poker")
    felt, name = drawn(page), page.evaluate("new URLSearchParams(location.hash.slice(1)).get('match')")
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
    assert drawn(page) == felt


def test_rounds_with_a_person_are_kept(page: Any, address: tuple[str, Hub, pathlib.Path]) -> None:
    """Hand by hand, each a record that can be replayed."""
    before = len(address[2].read_text().splitlines()) if address[2].exists() else 0
    deal(page, "kuhn_poker")
    play(page, click_a_move)
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
