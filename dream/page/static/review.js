// A finished round, move by move: what was played, what a player thinks of it, what it cost.

import { el, button } from "./dom.js";
import { T, gameText, moveText, playerText, signed } from "./strings.js";
import { opened, melds } from "./boards.js";
import { face } from "./cards.js";
import { actionRows } from "./advice.js";

export class Review {
  constructor(app, message, ply = 0) {
    Object.assign(this, { app, message, ply, judged: new Map(), worst: [], root: el("div", { class: "table-page review" }) });
    this.redraw();
  }

  judge(message) {
    this.judged.set(message.ply, message);
    this.worst = message.worst;
    this.final = message.final;
    this.redrawSide();
  }

  name(seat) {
    return seat === this.message.viewer ? T.you : playerText(this.message.names[seat]) ?? T.seat(seat);
  }

  describeMove(move) {
    const isYou = move.seat === this.message.viewer;
    return `${isYou ? "" : `${this.name(move.seat)} `}${moveText(move, isYou)}`;
  }

  go(ply) {
    this.ply = Math.max(0, Math.min(this.message.steps.length - 1, ply));
    this.redraw();
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1, Home: -1e6, End: 1e6 }[event.key];
    if (!step) return false;
    this.go(this.ply + step);
    return true;
  }

  branch(action) {
    const { match, round } = this.message;
    this.app.send({ type: "branch", match, round, ply: this.ply, action });
  }

  // The round, who looks at it, and lists of others.
  heading() {
    const { message } = this;
    const here = `${T.round(message.round)} · ${message.names.map((_, seat) => this.name(seat)).join(" – ")}`;
    return el("span", { class: "round" }, `${T.review}: ${gameText(message.game)}`, el("small", {}, here),
      message.file ? el("small", { id: "review-held" }, T.recordOf(message.rounds.count)) : null,
      el("span", { class: "row" },
        message.rounds.count > 1 ? this.choose("round", T.reviewOf, message.rounds.listed.map((one) => [one.round, T.roundLine(one)])) : null,
        this.choose("advisor", T.advisor, message.advisers.map((name) => [name, name]))),
      message.rounds.count > 1 ? this.rounds() : null);
  }

  // To the rounds before and after, and to any by its number.
  rounds() {
    const { round, rounds: { first, count } } = this.message;
    const last = first + count - 1;
    const jump = el("input", { type: "number", id: "review-jump", min: first + 1, max: last + 1, step: 1, required: true, value: round + 1 });
    return el("form", { class: "jump", onsubmit: (event) => { event.preventDefault(); this.ask({ round: jump.valueAsNumber - 1 }); } },
      button("◀", () => this.ask({ round: round - 1 }), { "aria-label": T.previousRound, id: "previous-round", disabled: round === first }),
      el("label", {}, `${T.goToRound} `, jump, ` ${T.ofRounds(last + 1)}`), el("button", { type: "submit", id: "review-go" }, T.goTo),
      button("▶", () => this.ask({ round: round + 1 }), { "aria-label": T.nextRound, id: "next-round", disabled: round === last }));
  }

  // Another round or another advisor is another review.
  ask(change) {
    const { match, round, advisor } = this.message;
    this.app.send({ type: "review", match, round, advisor, ...change });
  }

  // A list of rounds or advisors.
  choose(what, label, options) {
    const select = el("select", { id: `review-${what}`, "aria-label": label, onchange: () => {
      this.ask({ [what]: what === "round" ? Number(select.value) : select.value });
    } }, ...options.map(([value, text]) => el("option", { value }, text)));
    select.value = this.message[what];
    return select;
  }

  // What `opened` needs of a table.
  get match() {
    const { message } = this;
    const step = message.steps[this.ply];
    const done = step.to_act < 0;
    return { board: step.board, done, points: done ? message.points : null, viewer: message.viewer, over: false, chairs: [], game: message.game };
  }

  result() {
    const { message } = this;
    return el("div", { class: "result" }, el("h2", {}, message.points.map((won, seat) => `${this.name(seat)} ${signed(won, Number.isInteger(won) ? 0 : 1)}`).join(" · ")));
  }

  redraw() {
    const { message } = this;
    const step = message.steps[this.ply], last = message.steps.length - 1;
    const kept = document.activeElement?.id;
    this.root.replaceChildren(
      el("div", { class: `felt kind-${step.board.kind}` },
        el("div", { class: "scores" }, this.heading(),
          el("span", { class: "muted" }, T.stepOf(this.ply, last))),
        this.piles(step.board), opened(this),
        el("p", { class: "status", id: "step-text", role: "status" }, step.move ? this.describeMove(step.move) : T.roundOver),
        el("div", { class: "actions" },
          button("|◀", () => this.go(0), { "aria-label": T.first, id: "first" }), button("◀", () => this.go(this.ply - 1), { "aria-label": T.previous, id: "previous" }),
          button("▶", () => this.go(this.ply + 1), { "aria-label": T.following, id: "following", class: "primary" }), button("▶|", () => this.go(last), { "aria-label": T.last, id: "last" }),
          step.move ? button(T.playOn, () => this.branch(null), { id: "branch" }) : null,
          button(T.back, () => this.app.leaveReview(), { id: "leave-review" }))),
      this.side(step));
    this.settle(kept);
  }

  // A judgement changes the side alone: lists of the rest that are open stay open.
  redrawSide() {
    const kept = document.activeElement?.id;
    this.root.lastChild.replaceWith(this.side(this.message.steps[this.ply]));
    this.settle(kept);
  }

  settle(kept) {
    const here = this.root.querySelector(".moves .here");
    if (here) here.parentElement.scrollTop = here.offsetTop - here.parentElement.offsetTop - 60;
    this.focus(kept);
  }

  // A button that is now disabled gives the focus to the field beside it.
  focus(kept) {
    const found = kept ? document.getElementById(kept) : null;
    (found?.disabled ? document.getElementById("review-jump") : found)?.focus({ preventScroll: true });
  }

  piles(board) {
    if (!board.pile?.length) return board.bets ? el("p", { class: "muted centre" }, board.bets.flat().join(", ")) : null;
    return el("div", { class: "review-pile" }, el("span", { class: "caption" }, T.pile), ...board.pile.slice(-8).map((card) => face(card, { size: "small" })), board.table?.length ? melds(board.table) : null);
  }

  side(step) {
    const { message } = this;
    const found = this.judged.get(this.ply);
    return el("aside", { class: "side" }, el("div", { class: "side-panel" }, el("div", { class: "stack-s" },
      el("p", { class: "muted", id: "review-progress" }, this.final ? T.reviewDone(message.advisor) : T.reviewing(message.advisor, this.judged.size, message.decisions)),
      this.worst.length ? el("section", {}, el("h3", {}, T.worstTitle), el("ol", { class: "worst", id: "worst" }, ...this.worst.map((ply) => this.worstItem(ply)))) : this.final ? el("p", { id: "worst" }, T.noWorst) : null,
      found && step.choices ? el("section", {}, el("h3", {}, T.opinion(message.advisor, this.name(step.to_act))), actionRows(step.choices, { rows: found.rows, unit: message.unit }, null, step.move.id),
        el("div", { class: "chips" }, ...found.rows.filter((row) => row.id !== step.move.id).slice(0, 3).map((row) => {
          const choice = step.choices.find((one) => one.id === row.id);
          return button(T.tryInstead(choice), () => this.branch(row.id), { class: "quiet" });
        }))) : null,
      el("section", {}, el("h3", {}, T.moves), el("ol", { class: "moves" }, ...message.steps.filter((one) => one.move).map((one) => this.moveItem(one)))))));
  }

  worstItem(ply) {
    const { cost, margin } = this.judged.get(ply);
    return el("li", {}, button(`${this.describeMove(this.message.steps[ply].move)}: ${T.costText(cost, margin)}`, () => this.go(ply), { class: "quiet" }));
  }

  moveItem(one) {
    const cost = this.judged.get(one.ply)?.cost;
    return el("li", { value: one.ply + 1, class: `${one.ply === this.ply ? "here" : ""} ${one.to_act === this.message.viewer ? "mine" : ""}` },
      button(this.describeMove(one.move), () => this.go(one.ply), { class: "quiet", "aria-current": one.ply === this.ply ? "step" : null }),
      cost > 0.05 ? el("span", { class: "cost" }, `−${cost.toFixed(1)}`) : null);
  }
}
