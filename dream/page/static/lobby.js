// Where a game is chosen, and games under way are gone on with.

import { el, button, remember } from "./dom.js";
import { T, gameText, playerText, variantText, whole } from "./strings.js";
import { parts } from "./record.js";

const TARGETS = [null, 100, 250, 500];
const PACES = [0, 0.5, 1, 2, 5];

export function lobby(app, welcome) {
  const chosen = stored(welcome.games);
  const form = el("form", { class: "lobby-form", onsubmit: (event) => start(event) });
  const draw = () => form.replaceChildren(...fields());

  function fields() {
    const game = welcome.games.find((one) => one.game === chosen.game);
    const variant = game.variants.find((one) => one.key === chosen.variant) ?? game.variants[0];
    chosen.variant = variant.key;
    chosen.seats = Array.from({ length: variant.seats }, (_, n) => fitting(chosen.seats[n], n, variant));
    if (chosen.seats.filter((one) => one === null).length > 1) chosen.seats = chosen.seats.map((one, n) => (n ? one ?? variant.advisor : one));
    return [
      el("fieldset", { class: "games" }, el("legend", {}, T.game), ...welcome.games.map((one) => gameTile(one))),
      el("div", { class: "row" },
        pick(T.variant, "variant", game.variants.map(({ key }) => [key, variantText(game.game, key)]), chosen.variant, (value) => { chosen.variant = value; draw(); }),
        pick(T.target, "target", TARGETS.map((n) => [n ?? "", n ? T.points(n) : T.noTarget]), chosen.target ?? "", (value) => { chosen.target = value ? Number(value) : null; })),
      el("div", { class: "row" }, ...chosen.seats.map((one, n) =>
        pick(T.seat(n), `seat-${n}`, playersOf(variant), one ?? "", (value) => sit(n, value || null, variant)))),
      chosen.seats.includes(null) ? null : el("div", { class: "row" },
        pick(T.pace, "pace", PACES.map((s) => [s, T.paceOf(s)]), chosen.pace, (value) => { chosen.pace = Number(value); })),
      el("div", { class: "row" }, el("button", { type: "submit", class: "primary", id: "start" }, T.start)),
    ].filter(Boolean);
  }

  function sit(n, value, variant) {
    if (value === null) chosen.seats = chosen.seats.map((one) => one ?? variant.advisor);
    chosen.seats[n] = value;
    draw();
    form.querySelector(`[name=seat-${n}]`).focus();
  }

  function gameTile(one) {
    const input = el("input", { type: "radio", name: "game", value: one.game, onchange: () => {
      Object.assign(chosen, { game: one.game, variant: null, seats: [null] });
      draw();
      form.querySelector(`input[value="${one.game}"]`).focus();
    } });
    input.checked = one.game === chosen.game;
    return el("label", { class: "tile" }, input, el("span", {}, gameText(one.game)));
  }

  function start(event) {
    event.preventDefault();
    remember("lobby", JSON.stringify(chosen));
    const pace = chosen.seats.includes(null) ? 0 : chosen.pace;
    app.send({ type: "new", game: chosen.game, variant: chosen.variant, seats: chosen.seats, target: chosen.target, pace });
  }

  draw();
  return el("div", { class: "lobby" },
    el("section", { class: "panel" }, el("h1", {}, T.lobbyTitle), el("p", { class: "lead" }, T.lobbyLead), form),
    el("div", { class: "stack" },
      welcome.matches.length ? el("section", { class: "panel" }, el("h2", {}, T.recent), el("ul", { class: "matches" }, ...welcome.matches.slice(0, 12).map((one) => listed(app, one)))) : null,
      recordPanel(app)));
}

function playersOf({ levels, players }) {
  const named = (names) => names.map((name) => [name, playerText(name)]);
  return [["", T.yourself], ...(levels.length ? [[T.levels, named(levels)], [T.players, named(players)]] : named(players))];
}

function fitting(value, n, variant) {
  if (value === null || variant.players.includes(value) || variant.levels.includes(value)) return value;
  return n === 0 ? null : variant.advisor;
}

function stored(games) {
  const plain = { game: games.some((one) => one.game === "gin_rummy") ? "gin_rummy" : games[0].game, variant: null, seats: [null], target: 100, pace: 1 };
  try {
    const found = { ...plain, ...JSON.parse(remember("lobby") ?? "{}") };
    return games.some((one) => one.game === found.game) && Array.isArray(found.seats) ? found : plain;
  } catch {
    return plain;
  }
}

const option = ([key, text]) => el("option", { value: key }, text);

export function pick(label, name, options, value, onchange) {
  const select = el("select", { name, onchange: () => onchange(select.value) },
    ...options.map(([key, text]) => (Array.isArray(text) ? el("optgroup", { label: key }, ...text.map(option)) : option([key, text]))));
  select.value = value;
  return el("label", { class: "field" }, el("span", {}, label), select);
}

const scoresText = (one) => one.chairs.map((name, n) => `${playerText(name) ?? T.you} ${whole(one.scores[n])}`).join(" · ");

function listed(app, one) {
  const title = gameText(one.game);
  const about = one.rounds ? T.recordOf(one.rounds) : `${T.round(one.round)} · ${scoresText(one)}`;
  return el("li", {},
    el("div", {}, el("b", {}, title), el("small", {}, about)),
    button(T.resume, () => app.open(one.id), { "aria-label": `${T.resume}: ${title}, ${about}` }),
    button(T.remove, () => app.send({ type: "leave", match: one.id }), { class: "quiet", "aria-label": `${T.remove}: ${title}, ${about}` }));
}

function recordPanel(app) {
  const input = el("input", { type: "file", accept: ".json,.jsonl,.txt", id: "record", onchange: async () => {
    const file = input.files[0], { file_bytes: most, part_bytes: mostOfPart } = app.welcome;
    if (!file) return;
    if (file.size > most) return app.toast(T.recordTooLarge(file.size, most));
    for (const part of parts(await file.text().catch(() => ""), mostOfPart)) {
      if (!app.send({ type: "record", ...part })) return;
    }
  } });
  return el("section", { class: "panel" }, el("h2", {}, T.openRecord), el("p", { class: "lead" }, T.openRecordLead),
    el("label", { class: "field" }, el("span", {}, T.chooseFile), input));
}
