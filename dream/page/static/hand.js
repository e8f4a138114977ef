// The person's hand: sorted, melds grouped, one card chosen; by mouse, finger or keys.

import { el, button, remember } from "./dom.js";
import { face, bySuit, byRank } from "./cards.js";
import { T, cardName } from "./strings.js";

export const SORTS = ["melds", "suit", "rank"];

export function nextSort() {
  const now = remember("sort") ?? "melds";
  remember("sort", SORTS[(SORTS.indexOf(now) + 1) % SORTS.length]);
}

// board: of a game of cards with `hand`, perhaps `melds`, `unmatched`, `drawn`; playable: card -> what discarding leaves.
export function hand(table, board, playable) {
  const sort = SORTS.includes(remember("sort")) ? remember("sort") : "melds";
  const groups = grouped(board, sort);
  const flat = groups.flat();
  if (!flat.includes(table.chosen)) table.chosen = null;
  const focus = flat.includes(table.focused) ? table.focused : table.chosen ?? flat[0];
  const inMeld = new Set((board.melds ?? []).flat());
  const list = el("div", { class: "hand", role: "group", tabindex: "-1", "aria-label": T.handLabel, onkeydown: (event) => move(event, table, flat) },
    ...groups.map((cards, n) => el("div", { class: `group ${sort === "melds" && n < (board.melds?.length ?? 0) ? "melded" : ""}` },
      ...cards.map((card) => cardButton(table, card, board, playable, inMeld, card === focus)))));
  const sorts = el("div", { class: "sorts", role: "group", "aria-label": T.sortLabel },
    ...[["melds", T.sortMelds], ["suit", T.sortSuit], ["rank", T.sortRank]].map(([key, text]) =>
      button(text, () => { remember("sort", key); table.redraw(); }, { class: "quiet", "aria-pressed": String(sort === key), "data-sort": key })));
  return { list, sorts };
}

function grouped(board, sort) {
  const cards = [...board.hand];
  if (sort === "suit") return [cards.sort(bySuit)];
  if (sort === "rank") return [cards.sort(byRank)];
  const melds = (board.melds ?? []).map((meld) => [...meld].sort(byRank));
  const melded = new Set(melds.flat());
  const rest = cards.filter((card) => !melded.has(card)).sort(byRank);
  return rest.length ? [...melds, rest] : melds;
}

function cardButton(table, card, board, playable, inMeld, isFocus) {
  const left = playable.get(card);
  const notes = [cardName(card), inMeld.has(card) ? T.meld : null, board.drawn === card ? T.drawn : null, left?.left !== undefined ? T.afterDiscard(left.left) : null];
  const made = face(card, {
    tag: "button",
    label: notes.filter(Boolean).join(", "),
    class: [board.drawn === card ? "drawn" : "", left ? "playable" : "", inMeld.has(card) ? "in-meld" : ""].join(" "),
    "aria-pressed": String(table.chosen === card),
    tabindex: isFocus ? "0" : "-1",
    onclick: () => table.clickCard(card),
    onfocus: () => { table.focused = card; },
    onpointerdown: (event) => drag(event, table, card, left),
  });
  if (left?.left !== undefined) made.append(el("span", { class: "leaves", "aria-hidden": "true" }, String(left.left)));
  const danger = table.danger?.[card];
  if (danger !== undefined && left) {
    const mark = el("span", { class: "danger", "aria-hidden": "true" });
    mark.style.setProperty("--danger", danger);
    made.append(mark);
  }
  return made;
}

function move(event, table, flat) {
  const step = { ArrowRight: 1, ArrowLeft: -1, Home: -99, End: 99 }[event.key];
  if (!step) return;
  event.preventDefault();
  const at = flat.indexOf(table.focused);
  const from = at < 0 && step === 1 ? -1 : Math.max(at, 0);
  const to = flat[Math.max(0, Math.min(flat.length - 1, from + step))];
  const target = table.root.querySelector(`.hand [data-card="${to}"]`);
  table.root.querySelectorAll(".hand .card").forEach((one) => { one.tabIndex = one === target ? 0 : -1; });
  target?.focus();
}

// Drags a card to the discards; a short move is a click.
function drag(event, table, card, left) {
  if (!left || event.button > 0) return;
  const made = event.currentTarget, startX = event.clientX, startY = event.clientY;
  let moved = false;
  made.setPointerCapture(event.pointerId); // a quick pointer has left the card before it is first seen to move
  const over = (e) => document.elementsFromPoint(e.clientX, e.clientY).find((one) => one.dataset?.drop);
  const onmove = (e) => {
    const dx = e.clientX - startX, dy = e.clientY - startY;
    if (!moved && Math.hypot(dx, dy) < 8) return;
    if (!moved) { moved = true; made.classList.add("dragged"); }
    made.style.translate = `${dx}px ${dy}px`;
    document.querySelectorAll("[data-drop]").forEach((one) => one.classList.toggle("under", one === over(e)));
  };
  const end = (e) => {
    made.removeEventListener("pointermove", onmove);
    made.removeEventListener("pointerup", end);
    made.removeEventListener("pointercancel", end);
    made.classList.remove("dragged");
    made.style.translate = "";
    document.querySelectorAll("[data-drop]").forEach((one) => one.classList.remove("under"));
    if (!moved) return;
    made.addEventListener("click", (click) => { click.stopImmediatePropagation(); }, { capture: true, once: true });
    setTimeout(() => table.redraw(), 0);
    const target = e.type === "pointerup" ? over(e) : null;
    if (target) table.dropCard(card, target.dataset.drop);
  };
  made.addEventListener("pointermove", onmove);
  made.addEventListener("pointerup", end);
  made.addEventListener("pointercancel", end);
}
