// Hints and beliefs beside the table.

import { el, button } from "./dom.js";
import { T, choiceText, cardName, cardText, cardsText, percent, signed } from "./strings.js";
import { SUITS_SHOWN, suitClass } from "./cards.js";

export function advicePanel(table, tab) {
  return tab === "advice" ? hintPanel(table) : beliefPanel(table);
}

const canAsk = (table) => !table.match.done && table.match.viewer !== null;

function asking(table, kind, text, enabled) {
  const { variants } = table.app.welcome?.games.find((one) => one.game === table.match.game) ?? { variants: [] };
  const variant = variants.find((one) => one.key === table.match.variant) ?? variants[0];
  const select = el("select", { "aria-label": T.advisor, onchange: () => { table.advisor = select.value; } },
    ...(variant?.players ?? []).map((name) => el("option", { value: name }, name)));
  select.value = table.advisor ?? variant?.advisor ?? "";
  table.advisor = select.value || null;
  return el("div", { class: "asking" }, select, button(text, () => table.ask(kind), { class: "primary", id: `ask-${kind}`, disabled: !enabled }));
}

function hintPanel(table) {
  const { hint } = table.advice;
  const enabled = canAsk(table) && table.match.to_act === table.match.viewer;
  const parts = [asking(table, "hint", T.askHint, enabled)];
  if (!hint) parts.push(el("p", { class: "muted" }, enabled ? T.hintLead : T.hintWait));
  else if (hint.waiting) parts.push(el("p", { class: "muted", role: "status" }, T.preparing));
  else {
    parts.push(actionRows(table.match.choices, hint, table), el("p", { class: "muted", id: "hint-note" }, hint.why ? T.noValues(hint.why) : T.hintNote(hint)));
    if (!hint.final) parts.push(button(T.stop, () => { table.app.send({ type: "stop", match: table.match.id }); hint.final = true; table.redraw(); }, { class: "quiet" }));
  }
  return el("div", { class: "stack-s" }, ...parts);
}

// rows: id, prob and perhaps mean, low, high; played: the action that was chosen.
export function actionRows(choices, { rows, unit }, table, played) {
  const byId = new Map(choices.map((choice) => [choice.id, choice]));
  const valued = rows.some((row) => row.mean !== undefined);
  const low = Math.min(...rows.map((row) => row.low ?? 0)), high = Math.max(...rows.map((row) => row.high ?? 0));
  const at = (x) => (high > low ? (100 * (x - low)) / (high - low) : 50);
  return el("table", { class: "rows" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, T.action), el("th", { scope: "col" }, T.chance), valued ? el("th", { scope: "col" }, T.expected(unit)) : null)),
    el("tbody", {}, ...rows.filter((row) => byId.has(row.id)).map((row, n) => {
      const choice = byId.get(row.id);
      const bar = el("span", { class: "interval", "aria-hidden": "true" });
      if (valued) { bar.style.setProperty("--from", `${at(row.low)}%`); bar.style.setProperty("--to", `${100 - at(row.high)}%`); bar.style.setProperty("--at", `${at(row.mean)}%`); }
      const name = table && played === undefined && table.match ? button(choiceText(choice), () => table.act(choice), { class: "quiet row-action" }) : choiceText(choice);
      return el("tr", { class: `${n === 0 ? "best" : ""} ${row.id === played ? "played" : ""}` },
        el("th", { scope: "row" }, name), el("td", {}, percent(row.prob)),
        valued ? el("td", { title: T.intervalText(row) }, el("span", { class: "number" }, signed(row.mean)), el("small", {}, ` ± ${((row.high - row.low) / 2).toFixed(1)}`), bar) : null);
    })));
}

function beliefPanel(table) {
  const { belief } = table.advice;
  const parts = [asking(table, "belief", T.askBelief, canAsk(table))];
  if (!belief) parts.push(el("p", { class: "muted" }, table.match.done ? T.beliefOver : T.beliefLead));
  else if (belief.waiting) parts.push(el("p", { class: "muted", role: "status" }, T.preparing));
  else {
    const truth = table.match.done ? truths(table.match) : null;
    parts.push(...belief.others.map((other) => el("section", {}, el("h3", {}, T.beliefOf(table.name(other.seat))), map(belief, other.chances, truth?.[other.seat]))));
    parts.push(el("p", { class: "muted", id: "belief-note" }, T.beliefNote(belief), truth ? ` ${T.truthNote}` : ""));
    if (belief.outs && !truth) parts.push(...insight(belief));
  }
  return el("div", { class: "stack-s" }, ...parts);
}

function truths(match) {
  const hands = match.board.hands ?? [];
  return hands.map((hand) => new Set(typeof hand === "string" ? [hand] : hand.hand));
}

// A row a suit, a column a rank: how likely each card is to be held; a ring where it was.
function map(belief, chances, truth) {
  const { deck, own } = belief;
  if (deck.length !== 52) {
    return el("div", { class: "chips" }, ...deck.map((card, n) => el("span", { class: `cell wide ${suitClass(card)} ${truth?.has(card) ? "true" : ""}` },
      `${cardText(card)} ${own[n] && deck.length > 6 ? "–" : percent(chances[n])}`)));
  }
  const bySuit = SUITS_SHOWN.map((suit) => deck.map((card, n) => [card, n]).filter(([card]) => card[1] === suit));
  return el("table", { class: "map" },
    el("thead", {}, el("tr", {}, el("td", {}), ...bySuit[0].map(([card]) => el("th", { scope: "col" }, cardText(card).slice(0, -1))))),
    el("tbody", {}, ...bySuit.map((row) => el("tr", {}, el("th", { scope: "row", class: suitClass(row[0][0]) }, cardText(row[0][0]).slice(-1)),
      ...row.map(([card, n]) => cell(card, chances[n], own[n], truth?.has(card)))))));
}

function cell(card, chance, isOwn, isTrue) {
  const made = el("td", { class: `cell ${isOwn ? "own" : ""} ${isTrue ? "true" : ""}`, title: `${cardName(card)}: ${isOwn ? T.own : percent(chance)}` },
    el("span", { class: "unseen" }, `${cardName(card)} ${isOwn ? T.own : percent(chance)}`), el("span", { "aria-hidden": "true" }, isOwn ? "" : chance > 0.004 ? String(Math.round(100 * chance)) : "·"));
  made.style.setProperty("--chance", isOwn ? 0 : chance);
  return made;
}

function insight(belief) {
  const danger = Object.entries(belief.danger).sort((a, b) => a[1] - b[1]);
  return [
    el("section", {}, el("h3", {}, T.knockTitle), el("p", {}, T.knockText(belief))),
    el("section", {}, el("h3", {}, T.outsTitle(belief)), belief.outs.length ? el("p", { class: "chips" }, ...belief.outs.map((out) =>
      el("span", { class: `cell wide ${suitClass(out.card)}`, title: T.outText(out) }, `${cardText(out.card)} → ${out.left}`))) : el("p", { class: "muted" }, T.noOuts)),
    el("section", {}, el("h3", {}, T.dangerTitle), el("p", { class: "chips", id: "danger" }, ...danger.map(([card, chance]) =>
      el("span", { class: `cell wide ${suitClass(card)}` }, `${cardText(card)} ${percent(chance)}`))), el("p", { class: "muted" }, T.dangerNote)),
  ];
}

export { cardsText };
