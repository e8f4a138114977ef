// The middle of the table and the others' side of it, by the kind of board.

import { el } from "./dom.js";
import { back, die, face, byRank } from "./cards.js";
import { T, cardName, choiceText, gameText } from "./strings.js";

export function opponents(table) {
  const { board } = table.match;
  if (!board.others) return null;
  return el("div", { class: "others" }, ...board.others.map((other) => el("section", { class: "other", "aria-label": T.handOf(table.name(other.seat)) },
    el("h3", {}, table.name(other.seat), el("small", {}, board.kind === "dice" ? "" : T.cardsHeld(other.count))),
    el("div", { class: "fan" },
      ...other.known.map((card) => face(card, { size: "small", label: `${cardName(card)}, ${T.known}` })),
      ...Array.from({ length: other.count - other.known.length }, () => (board.kind === "dice" ? die(null, "small") : back("small")))),
    other.points === undefined ? null : el("p", { class: "muted" }, T.points(other.points)))));
}

export function middle(table) {
  const { board } = table.match;
  const made = { gin: piles, rummy: piles, poker, dice, drawing }[board.kind] ?? drawing;
  return el("div", { class: "middle" }, made(table, board));
}

function piles(table, board) {
  const stock = table.choices("stock")[0];
  const takes = new Map(table.choices("take").map((choice) => [choice.cards[0], choice]));
  const top = board.pile.at(-1);
  const deep = board.kind === "rummy";
  return [
    el("div", { class: "place" },
      el("button", { type: "button", class: `card back stock ${stock ? "playable" : ""}`, id: "stock", disabled: !stock,
        "aria-label": stock?.ends ? choiceText(stock) : `${T.stock}, ${T.stockLeft(board.stock)}`, onclick: () => table.act(stock) }),
      el("span", { class: "caption" }, `${T.stock} · ${board.stock}`)),
    el("div", { class: "place pile-place" },
      el("div", { class: `pile ${deep ? "deep" : ""}`, "data-drop": "pile", id: "pile" },
        top ? board.pile.slice(deep ? 0 : -4).map((card, n, all) => pileCard(table, card, n === all.length - 1, takes, deep)) : el("span", { class: "card hole" })),
      el("span", { class: "caption" }, `${T.pile} · ${board.pile.length}`)),
    board.table ? melds(board.table) : null,
    carried(table, board),
  ];
}

// Of a match to a target within one game: the scores of its rounds so far.
function carried(table, { carried: found }) {
  if (!found) return null;
  return el("p", { class: "carried", id: "carried" }, T.carried(found, found.totals.map((_, seat) => table.name(seat))));
}

function pileCard(table, card, isTop, takes, deep) {
  const open = takes.has(card) || (isTop && (takes.size > 0 || table.choices("discard").length > 0));
  if (!isTop && !deep) return face(card, { class: "under-top", "aria-hidden": "true" });
  return face(card, { tag: "button", disabled: !open, class: takes.has(card) ? "playable" : "", onclick: () => table.clickPile(card), "data-pile": card });
}

export function melds(groups) {
  return el("div", { class: "melds-on-table" }, ...groups.map((group) => el("div", { class: "group melded" }, ...group.map((card) => face(card, { size: "small" })))));
}

function poker(table, board) {
  return [
    el("div", { class: "place" }, board.public ? face(board.public) : "public" in board && table.match.game !== "kuhn_poker" ? back() : null,
      table.match.game === "kuhn_poker" ? null : el("span", { class: "caption" }, T.publicCard)),
    el("div", { class: "pot" }, el("b", {}, T.pot(board.chips.reduce((a, b) => a + b, 0))),
      ...board.chips.map((n, seat) => el("span", {}, `${table.name(seat)}: ${T.chips(n)}`))),
    board.hand ? el("div", { class: "place own" }, ...board.hand.map((card) => face(card, { "data-own": card })), el("span", { class: "caption" }, T.handLabel)) : null,
  ];
}

function dice(table, board) {
  return [
    el("div", { class: "bids" }, el("h3", {}, T.bids), board.bids.length ? el("ol", {}, ...board.bids.map(([quantity, number]) =>
      el("li", {}, el("b", {}, `${quantity} ×`), die(number, "tiny")))) : el("p", { class: "muted" }, T.noBids)),
    board.hand ? el("div", { class: "place own" }, die(Number(board.hand[0])), el("span", { class: "caption" }, T.handLabel)) : null,
  ];
}

function drawing(table, board) {
  if (!board.svg) return el("p", { class: "muted" }, "");
  return el("img", { class: "drawing", alt: gameText(table.match.game), src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(board.svg)}` });
}

// All hands open: after the round, and where nobody plays.
export function opened(table) {
  const { match } = table;
  const { board } = match;
  const hands = board.hands ?? [];
  return el("div", { class: "opened" },
    match.done ? table.result() : carried(table, board),
    board.kind === "drawing" && match.done ? drawing(table, board) : null,
    board.kind === "dice" && match.done ? dice(table, board) : null,
    board.kind === "poker" && match.done && board.public ? el("div", { class: "middle" }, el("div", { class: "place" }, face(board.public), el("span", { class: "caption" }, T.publicCard))) : null,
    ...hands.map((hand, seat) => el("section", { class: "open-hand", "aria-label": T.handOf(table.name(seat)) },
      el("h3", {}, table.name(seat), match.points ? el("small", { class: match.points[seat] > 0 ? "won" : match.points[seat] < 0 ? "lost" : "" }, signedPoints(match.points[seat])) : null),
      el("div", { class: "fan open" }, ...openHand(board, hand, seat)))),
    board.table?.length ? melds(board.table) : null);
}

const signedPoints = (won) => (won > 0 ? `+${won}` : String(won)).replace("-", "−");

function openHand(board, hand, seat) {
  if (typeof hand === "string") return [board.kind === "dice" ? die(Number(hand), "small") : face(hand, { size: "small" })];
  const laid = board.settlement?.laid?.[seat];
  const melds = laid ? laid.melds : hand.melds ?? [];
  const melded = new Set(melds.flat());
  const off = board.settlement && board.settlement.knocker !== seat ? board.settlement.layoffs ?? [] : [];
  const offCards = new Set(off.map((one) => one.card));
  const onto = board.settlement && board.settlement.knocker === seat ? board.settlement.layoffs ?? [] : [];
  const rest = hand.hand.filter((card) => !melded.has(card) && !offCards.has(card)).sort(byRank);
  const groups = melds.map((meld, n) => {
    const added = onto.filter((one) => one.meld === n).map((one) => one.card);
    return el("div", { class: "group melded" }, ...[...meld, ...added].sort(byRank).map((card) =>
      face(card, { size: "small", class: added.includes(card) ? "laid-off" : "" })));
  });
  if (rest.length) groups.push(el("div", { class: "group" }, ...rest.map((card) => face(card, { size: "small" }))));
  if (laid) groups.push(el("span", { class: "deadwood" }, T.deadwood(laid.points)));
  return groups;
}
