// Hints and beliefs beside the table.

import { el, button } from "./dom.js";
import { T } from "./strings.js";

export function advicePanel(table, tab) {
  return el("p", { class: "muted" }, tab);
}
