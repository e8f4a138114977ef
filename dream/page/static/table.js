// The table: a match on the screen, and what the person does there.

import { el, button } from "./dom.js";
import { T, cardsText, choiceText, endingText, moveText, playerText, sumText, termsText, signed, whole } from "./strings.js";
import { hand, nextSort } from "./hand.js";
import { middle, opponents, opened } from "./boards.js";
import { advicePanel } from "./advice.js";

const nameOf = (chair) => (chair.person ? T.you : playerText(chair.name));

export class Table {
  constructor(app) {
    this.app = app;
    this.root = el("div", { class: "table-page" });
    this.chosen = null;
    this.focused = null;
    this.tab = "moves";
    this.thought = null;
    this.advice = {};
  }

  // --- what the server says

  show(match) {
    const before = this.match;
    // Of a secret move only the turn's change shows.
    const moved = !before || ["id", "round", "ply", "to_act"].some((key) => before[key] !== match[key]);
    const sameRound = before?.id === match.id && before.round === match.round;
    if (!sameRound) this.believed = null;
    // A new deal within a match that is one game may hold the card that was chosen before: it is not chosen again.
    if (!sameRound || before.board.carried?.rounds !== match.board.carried?.rounds) this.chosen = this.focused = null;
    if (moved) {
      this.thought = this.danger = null;
      this.advice = match.done && this.believed ? { belief: this.believed } : sameRound ? { stale: true } : {};
    }
    this.match = match;
    this.redraw();
    if (moved) this.say(before);
  }

  thinking(message) {
    this.thought = { ...message, since: performance.now() };
    this.tick();
  }

  tick() {
    const status = this.root.querySelector("#status");
    if (!this.thought || !status?.isConnected) return;
    status.textContent = T.thinking(playerText(this.thought.name), (performance.now() - this.thought.since) / 1000, this.thought.usual);
    setTimeout(() => this.tick(), 100);
  }

  advise(kind, message) {
    if (message.match !== this.match.id || message.round !== this.match.round) return;
    if (kind === "belief") this.believed = message; // the last of the round is held against the truth once that is open
    if (message.ply !== this.match.ply && !(kind === "belief" && this.match.done)) return;
    this.advice[kind] = message;
    delete this.advice.stale;
    if (message.danger) this.danger = message.danger;
    this.redraw();
  }

  say(before) {
    const { match } = this;
    const from = before && before.id === match.id && before.round === match.round ? before.ply : 0;
    const news = match.log.filter((move) => move.ply >= from && move.seat !== match.viewer).map((move) => this.describeMove(move));
    this.app.live([...news, match.done ? this.ending() : match.to_act === match.viewer ? T.turnYours : ""].filter(Boolean).join(". "));
  }

  // --- names

  name(seat) {
    const chair = this.match.chairs.find((one) => one.seat === seat);
    return nameOf(chair);
  }

  describeMove(move) {
    const isYou = move.seat === this.match.viewer;
    return `${isYou ? "" : `${this.name(move.seat)} `}${moveText(move, isYou)}`;
  }

  ending() {
    const { board, points, viewer } = this.match;
    if (board.settlement) return endingText(board.settlement, (seat) => this.name(seat), viewer);
    return points.map((won, seat) => `${this.name(seat)} ${signed(won)}`).join(", ");
  }

  // --- what the person does

  act(choice) {
    const { id, round, ply } = this.match;
    this.app.send({ type: "act", match: id, round, ply, action: choice.id });
  }

  choices(...kinds) {
    return this.match.choices.filter((choice) => kinds.includes(choice.kind));
  }

  byCard(...kinds) {
    return new Map(this.choices(...kinds).filter((choice) => choice.cards.length === 1).map((choice) => [choice.cards[0], choice]));
  }

  clickCard(card) {
    if (this.chosen === card) {
      const choice = this.byCard("discard").get(card);
      if (choice) return this.act(choice);
    }
    this.chosen = this.chosen === card ? null : card;
    this.focused = card;
    this.redraw();
    this.root.querySelector(`.hand [data-card="${card}"]`)?.focus();
  }

  dropCard(card, where) {
    const kinds = where === "knock" ? ["knock", "gin"] : where === "pile" ? ["discard"] : ["layoff"];
    const choice = this.byCard(...kinds).get(card);
    if (choice) this.act(choice);
  }

  clickPile(card) {
    if (this.chosen) {
      const choice = this.byCard("discard").get(this.chosen);
      if (choice) return this.act(choice);
    }
    const take = this.choices("take").find((choice) => choice.cards[0] === card) ?? this.choices("take").at(-1);
    if (take) this.act(take);
  }

  first(...kinds) {
    const choice = this.choices(...kinds)[0];
    if (choice) this.act(choice);
  }

  // With the chosen card, else the one that has the focus, else the best one.
  knock() {
    const found = this.byCard("knock", "gin"), held = document.activeElement?.closest(".hand .card")?.dataset.card;
    const choice = found.get(this.chosen) ?? found.get(held) ?? this.bestEnd();
    if (choice) this.act(choice);
    else this.first("gin", "knock");
  }

  // Gin where it can be had, else the knock that leaves least.
  bestEnd() {
    for (const kind of ["gin", "knock"]) {
      const found = [...this.byCard(kind).values()];
      if (found.length) return found.reduce((a, b) => ((b.left ?? 0) < (a.left ?? 0) ? b : a));
    }
    return null;
  }

  next() {
    if (this.match?.done && !this.match.over) this.app.send({ type: "next", match: this.match.id, round: this.match.round });
  }

  key(event) {
    if (!this.match) return false;
    const key = event.key.toLowerCase();
    const chosen = (...kinds) => { const found = this.byCard(...kinds).get(this.chosen ?? this.focused); if (found) this.act(found); };
    const keys = {
      s: () => this.first("stock"), t: () => this.first("take"), p: () => this.first("pass", "end", "done"),
      d: () => chosen("discard"), k: () => this.knock(),
      n: () => this.next(), r: () => { nextSort(); this.redraw(); },
      h: () => this.ask("hint"), b: () => this.ask("belief"),
    };
    if (keys[key]) keys[key]();
    else if (/^[1-9]$/.test(key)) this.root.querySelectorAll(".actions button")[Number(key) - 1]?.click();
    else return false;
    return true;
  }

  ask(kind) {
    this.tab = kind === "hint" ? "advice" : "beliefs";
    this.advice[kind] = { waiting: true };
    this.app.send({ type: kind, match: this.match.id, advisor: this.advisor ?? null });
    this.redraw();
  }

  // --- drawing

  redraw() {
    const { match } = this;
    const had = this.root.contains(document.activeElement);
    const kept = had ? where(document.activeElement) : null;
    this.root.replaceChildren(
      el("div", { class: `felt kind-${match.board.kind}`, "data-ply": `${match.round}.${match.ply}` }, this.scores(), match.done || match.viewer === null ? opened(this) : opponents(this),
        match.done ? null : middle(this), this.bottom()),
      this.side());
    if (kept) this.root.querySelector(kept)?.focus({ preventScroll: true });
    if (had && !this.root.contains(document.activeElement)) this.focusHome();
    this.tick();
  }

  // Where the focus goes when what had it is gone; to no card, so that no key plays one that was not chosen.
  focusHome() {
    const found = ["#result", ".hand", "#status"].map((one) => this.root.querySelector(one)).find(Boolean);
    found?.focus({ preventScroll: true });
  }

  scores() {
    const { match } = this;
    return el("div", { class: "scores", "aria-label": T.score },
      el("span", { class: "round" }, T.round(match.round), match.target ? el("small", {}, T.toTarget(match.target)) : null),
      ...match.chairs.map((chair) => el("span", { class: `chair ${chair.seat === match.to_act ? "on-turn" : ""}` },
        el("span", { class: "who" }, nameOf(chair)), el("b", {}, whole(chair.score)))));
  }

  status() {
    const { match } = this;
    if (match.done) return "";
    if (match.to_act !== match.viewer) return match.paused ? T.paused : T.turnOf(this.name(match.to_act));
    if (!["gin", "rummy"].includes(match.board.kind)) return `${T.turnYours}. ${T.pickAny}`;
    if (match.board.duty) return `${T.turnYours}. ${T.mustPlay(match.board.duty)}`;
    const can = (kind) => this.choices(kind).length > 0;
    const ends = this.choices("stock").some((choice) => choice.ends);
    const what = can("lay") || can("layoff") ? T.pickPlay : can("discard") ? T.pickDiscard : can("pass") && can("take") ? T.pickOffer : can("take") ? (ends ? T.pickTake : T.pickDraw) : can("stock") ? (ends ? T.pickEnd : T.pickForced) : T.pickAny;
    return `${T.turnYours}. ${what}`;
  }

  bottom() {
    const { match } = this;
    const parts = [];
    if (!match.done && match.viewer !== null && match.board.hand && ["gin", "rummy"].includes(match.board.kind)) {
      const made = hand(this, match.board, this.byCard("discard"));
      parts.push(made.list, el("div", { class: "hand-foot" },
        match.board.unmatched === undefined ? null : el("span", { class: "deadwood", id: "deadwood" }, T.deadwood(match.board.unmatched)), made.sorts));
    }
    return el("div", { class: "bottom" },
      el("p", { class: "status", id: "status", tabindex: "-1" }, this.status()),
      el("div", { class: "actions", id: "actions" }, ...this.buttons()), ...parts);
  }

  buttons() {
    const { match } = this;
    if (match.done) return this.endButtons();
    if (match.viewer === null) return [this.pauseButton()];
    const focus = this.chosen;
    const cardKinds = ["discard", "knock", "gin"];
    const shown = match.choices.filter((choice) => !cardKinds.includes(choice.kind) || choice.cards.length !== 1 || choice.cards[0] === focus);
    const made = shown.map((choice) => button(choiceText(choice), () => this.act(choice), {
      class: ["knock", "gin", "liar"].includes(choice.kind) ? "accent" : ["discard", "stock"].includes(choice.kind) ? "primary" : "",
      "data-kind": choice.kind, "data-action": choice.id }));
    const best = this.bestEnd();
    if (best && !this.byCard(best.kind).has(focus)) {
      made.push(button(choiceText(best), () => this.act(best), { class: "accent", "data-kind": best.kind, "data-action": best.id, "data-drop": "knock" }));
    }
    return made;
  }

  pauseButton() {
    const { id, pace, paused } = this.match;
    return button(paused ? T.goOn : T.pause, () => this.app.send({ type: "pace", match: id, pace, paused: !paused }), { id: "pause" });
  }

  endButtons() {
    const { match } = this;
    const made = [];
    if (!match.over) made.push(button(T.next, () => this.next(), { class: "primary", id: "next" }));
    else made.push(button(T.newMatch, () => this.app.goHome(), { class: "primary" }));
    if (match.viewer === null && !match.over) made.push(this.pauseButton());
    if (match.rounds.length) made.push(button(T.reviewRound, () => this.review(match.round), { id: "review" }));
    return made;
  }

  side() {
    const tabs = [["moves", T.moves], ["advice", T.advice], ["beliefs", T.beliefs]];
    return el("aside", { class: "side" },
      el("div", { class: "tabs", role: "tablist" }, ...tabs.map(([key, text]) =>
        button(text, () => { this.tab = key; this.redraw(); }, { role: "tab", id: `tab-${key}`, "aria-selected": String(this.tab === key), "aria-controls": "side-panel" }))),
      el("div", { class: "side-panel", id: "side-panel", role: "tabpanel", "aria-labelledby": `tab-${this.tab}` },
        this.tab === "moves" ? this.moves() : advicePanel(this, this.tab)));
  }

  moves() {
    const { log } = this.match;
    return el("div", { class: "stack-s" }, log.length ? this.moveList(log) : el("p", { class: "muted" }, T.noMoves), this.finished());
  }

  // The rounds that are over, each to be reviewed.
  finished() {
    const { id, chairs, rounds } = this.match;
    if (!rounds.length) return null;
    const names = chairs.map((chair) => chair.name), viewer = chairs.findIndex((chair) => chair.person);
    return el("section", {}, el("h3", {}, T.finishedRounds), el("ol", { class: "finished", id: "finished" }, ...[...rounds].reverse().map((one) =>
      el("li", {}, button(T.roundLine({ ...one, names, viewer }), () => this.review(one.round), { class: "quiet", title: T.reviewRound })))));
  }

  review(round) {
    this.app.send({ type: "review", match: this.match.id, round, advisor: null });
  }

  moveList(log) {
    return el("ol", { class: "moves", reversed: true }, ...[...log].reverse().map((move) =>
      el("li", { value: move.ply + 1, class: move.seat === this.match.viewer ? "mine" : "" }, this.describeMove(move))));
  }

  result() {
    const { match } = this;
    const { settlement } = match.board;
    const most = Math.max(...match.chairs.map((chair) => chair.score));
    const winners = match.over && !match.branched ? match.chairs.filter((chair) => chair.score === most) : [];
    return el("div", { class: "result", id: "result", tabindex: "-1" },
      el("h2", {}, this.ending()),
      settlement?.terms ? el("p", { class: "sum" }, el("b", {}, sumText(settlement.terms, settlement.total)), el("small", {}, termsText(settlement.terms))) : null,
      settlement?.layoffs?.length ? el("p", {}, `${this.describeMove({ kind: "layoff", seat: 1 - settlement.knocker, cards: [] })} ${cardsText(settlement.layoffs.map((one) => one.card))}`) : null,
      ...(settlement?.scores ?? []).map((one, seat) => el("p", { class: "sum-line" }, T.scoreLine(this.name(seat), one))),
      match.board.carried ? el("p", { class: "sum-line", id: "carried" }, T.carried(match.board.carried, match.board.carried.totals.map((_, seat) => this.name(seat)))) : null,
      winners.length ? el("p", { class: "winner" }, T.matchWon(winners.map(nameOf), most)) : null);
  }
}

function where(element) {
  if (element.id) return `#${element.id}`;
  const { card, action, sort } = element.dataset;
  if (card) return `.hand [data-card="${card}"]`;
  if (action) return `[data-action="${action}"]`;
  return sort ? `[data-sort="${sort}"]` : null;
}
