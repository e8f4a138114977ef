// A card, a back, a die.

import { el } from "./dom.js";
import { T, SUIT_SIGNS, cardName } from "./strings.js";

const RANKS = "A23456789TJQK";
export const rankOf = (card) => RANKS.indexOf(card[0]);

// Spades, hearts, clubs, diamonds: black and red take turns.
const SUIT_ORDER = "SHCDshcd";
export const SUITS_SHOWN = ["S", "H", "C", "D"];
export const suitClass = (card) => (card[1] ? `suit-${card[1].toUpperCase()}` : "suitless");
export const suitOf = (card) => SUIT_ORDER.indexOf(card[1] ?? "S");

export const bySuit = (a, b) => suitOf(a) - suitOf(b) || rankOf(a) - rankOf(b);
export const byRank = (a, b) => rankOf(a) - rankOf(b) || suitOf(a) - suitOf(b);

export function face(card, { label, tag = "span", size, ...rest } = {}) {
  const suit = (card[1] ?? "").toUpperCase();
  const rank = card[0] === "T" ? "10" : card[0];
  const made = el(tag, {
    ...(tag === "button" ? { type: "button" } : { role: "img" }),
    "aria-label": label ?? cardName(card),
    ...rest,
    class: `card ${suit ? `suit-${suit}` : "suitless"} ${size ?? ""} ${rest.class ?? ""}`,
    data: { card },
  });
  made.append(
    el("span", { class: "corner", "aria-hidden": "true" }, el("b", {}, rank), suit ? el("i", {}, SUIT_SIGNS[suit]) : null),
    el("span", { class: "pip", "aria-hidden": "true" }, suit ? SUIT_SIGNS[suit] : rank),
  );
  return made;
}

export const back = (size = "") => el("span", { class: `card back ${size}`, "aria-hidden": "true" });

const PIPS = { 1: [5], 2: [1, 9], 3: [1, 5, 9], 4: [1, 3, 7, 9], 5: [1, 3, 5, 7, 9], 6: [1, 3, 4, 6, 7, 9] };

export function die(number, size = "") {
  const made = el("span", { class: `die ${size}`, role: "img", "aria-label": number ? T.die(number) : T.faceDown });
  if (!number) made.classList.add("covered");
  for (let place = 1; place <= 9; place++) made.append(el("span", { class: PIPS[number]?.includes(place) ? "dot" : "" }));
  return made;
}
