// The page: which of its parts is shown, and the switches in the bar.

import { el, button, remember } from "./dom.js";
import { T, errorText, tableText } from "./strings.js";
import { Net } from "./net.js";
import { lobby } from "./lobby.js";
import { Table } from "./table.js";
import { Review } from "./review.js";

const root = document.getElementById("app");
const byId = (id) => document.getElementById(id);

const app = {
  welcome: null,
  table: null,
  review: null,

  send(message) {
    const sent = net.send(message);
    if (!sent) this.toast(T.lost);
    return sent;
  },

  open(id) {
    location.hash = `match=${id}`;
  },

  goHome() {
    history.pushState(null, "", location.pathname);
    this.table = this.review = null;
    this.send({ type: "stop", match: "" });
    this.send({ type: "hello", key: remember("key") });
  },

  leaveReview() {
    const { match } = this.review.message;
    this.review = null;
    this.send({ type: "stop", match });
    if (this.table?.match?.id === match) this.putTable();
    else this.goHome();
  },

  live(text) {
    byId("live").textContent = text;
  },

  toast(text) {
    const toast = byId("toast");
    toast.textContent = text;
    toast.hidden = false;
    clearTimeout(this.hiding);
    this.hiding = setTimeout(() => { toast.hidden = true; }, 5000);
  },

  putTable() {
    this.put(this.table.root);
    if (document.activeElement === document.body) this.table.focusHome();
  },

  put(...children) {
    root.replaceChildren(...children);
  },
};

const wanted = () => new URLSearchParams(location.hash.slice(1)).get("match");

const on = {
  welcome(message) {
    remember("key", message.key);
    app.welcome = message;
    const id = wanted();
    if (id) app.send({ type: "open", match: id });
    else showLobby();
  },
  match({ match }) {
    if (app.review?.message.match === match.id && app.table?.match?.id === match.id) return app.table.show(match);
    app.review = null;
    if (!app.table || app.table.match?.id !== match.id) app.table = new Table(app);
    if (wanted() !== match.id) history.pushState(null, "", `#match=${match.id}`);
    app.table.show(match);
    if (!app.table.root.isConnected) app.putTable();
    byId("match-name").textContent = tableText(match);
  },
  thinking: (message) => app.table?.thinking(message),
  hint: (message) => app.table?.advise("hint", message),
  belief: (message) => app.table?.advise("belief", message),
  opened({ match, rounds }) {
    app.live(T.recordOf(rounds));
    history.pushState(null, "", `#match=${match}`);
  },
  review(message) {
    const kept = document.activeElement?.id, old = app.review?.message;
    const isSame = old?.match === message.match && old.round === message.round;
    app.review = new Review(app, message, isSame ? app.review.ply : 0);
    byId("match-name").textContent = tableText(message);
    app.put(app.review.root);
    app.review.focus(kept);
  },
  judged(message) {
    if (app.review?.message.match === message.match && app.review.message.round === message.round) app.review.judge(message);
  },
  error(message) {
    app.toast(errorText(message));
    if (app.review) app.review.redraw();
    else if (!app.table && app.welcome && wanted()) app.goHome();
  },
};

function showLobby() {
  app.table = app.review = null;
  byId("match-name").textContent = "";
  app.put(lobby(app, app.welcome));
}

const net = new Net(
  (message) => on[message.type]?.(message),
  (status) => {
    if (status === "connecting" && document.body.dataset.link === "lost") return;
    byId("link").textContent = T[status];
    document.body.dataset.link = status;
  },
);
const heard = net.onMessage;
net.onMessage = (message) => {
  byId("link").textContent = T.connected;
  document.body.dataset.link = "open";
  heard(message);
};

window.addEventListener("hashchange", () => {
  const id = wanted();
  if (id && app.table?.match?.id !== id && app.review?.message.match !== id) app.send({ type: "open", match: id });
  else if (!id && app.table) app.goHome();
});
window.addEventListener("popstate", () => {
  if (!wanted() && app.table) app.goHome();
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog")) return;
  if (event.key === "?") return help();
  if ((app.review ?? app.table)?.key(event)) event.preventDefault();
});

function help() {
  const dialog = byId("dialog");
  dialog.replaceChildren(
    el("h2", { id: "dialog-title" }, T.keysTitle),
    el("dl", { class: "keys" }, ...T.keys.flatMap(([key, text]) => [el("dt", {}, key), el("dd", {}, text)])),
    el("p", { class: "muted" }, T.dragHelp),
    button(T.close, () => dialog.close(), { class: "primary" }));
  dialog.showModal();
}

function toggle(id, name, values, apply) {
  const made = byId(id);
  const set = (value) => { remember(name, value); apply(value); };
  apply(remember(name) ?? values[0]);
  made.addEventListener("click", () => set(values[(values.indexOf(remember(name) ?? values[0]) + 1) % values.length]));
}

document.title = T.brand;
byId("skip").textContent = T.skip;
byId("home").append(el("img", { src: "icon.svg", alt: "" }), el("span", {}, T.brand));
byId("home").title = T.home;
byId("home").addEventListener("click", () => app.goHome());
byId("colours").textContent = T.colours;
byId("theme").textContent = T.theme;
byId("help").textContent = T.help;
byId("help").addEventListener("click", help);
toggle("colours", "colours", ["four", "two"], (value) => {
  document.documentElement.dataset.colours = value;
  byId("colours").setAttribute("aria-pressed", String(value === "four"));
});
toggle("theme", "theme", ["auto", "light", "dark"], (value) => { document.documentElement.dataset.theme = value; });
