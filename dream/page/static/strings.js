// Every sentence of the page, and the names of games, their variants and cards. Nothing else here.

export const SUIT_SIGNS = { S: "♠", H: "♥", D: "♦", C: "♣", s: "♠", h: "♥", d: "♦", c: "♣" };
const SUIT_NAMES = { S: "spades", H: "hearts", D: "diamonds", C: "clubs" };
const RANK_NAMES = {
  A: "ace", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", T: "ten",
  J: "jack", Q: "queen", K: "king",
};

export const cardText = (card) => (card[0] === "T" ? "10" : card[0]) + (SUIT_SIGNS[card[1]] ?? "");
export const cardName = (card) =>
  (RANK_NAMES[card[0]] ?? card[0]) + (card[1] ? ` of ${SUIT_NAMES[card[1].toUpperCase()]}` : "");
export const cardsText = (cards) => cards.map(cardText).join(" ");
export const playerText = (name) => name?.replace(/^level:(\d+)$/, "Level $1");
const plural = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;
export const signed = (x, digits = 1) => `${x > 0 ? "+" : x < 0 ? "−" : ""}${Math.abs(x).toFixed(digits)}`;
export const whole = (x) => (Number.isInteger(x) ? String(x) : x.toFixed(1)).replace("-", "−");
export const percent = (x) => (x > 0 && x < 0.005 ? "<1 %" : `${Math.round(100 * x)} %`);

export const T = {
  brand: "Dream rummy",
  skip: "Skip to the table",
  home: "All games",
  theme: "Light or dark",
  colours: "Four colours",
  help: "Keys and help",
  close: "Close",
  connected: "",
  connecting: "Connecting …",
  lost: "Connection lost. Trying again …",
  lobbyTitle: "Play",
  lobbyLead: "Choose a game and who sits at the table.",
  game: "Game",
  variant: "Rules",
  seat: (n) => `Seat ${n + 1}`,
  levels: "Levels, weakest first",
  players: "Players by name",
  you: "You",
  yourself: "You play",
  target: "Play to",
  noTarget: "round by round",
  points: (n) => `${n} points`,
  pace: "Pace of players among themselves",
  paceOf: (s) => (s === 0 ? "at once" : `${s} s a move`),
  start: "Deal the cards",
  recent: "Your tables",
  resume: "Go on",
  remove: "Leave",
  openRecord: "Open a record",
  openRecordLead: "Rounds from a file: this project's records, OpenSpiel action histories, evaluation histories.",
  chooseFile: "Choose a file",
  round: (n) => `Round ${n + 1}`,
  toTarget: (n) => (n ? `to ${n}` : ""),
  turnYours: "Your turn",
  turnOf: (name) => `${name} to move`,
  thinking: (name, seconds, usual) =>
    `${name} is thinking … ${seconds.toFixed(1)} s` + (usual && usual > 0.2 ? ` of about ${usual.toFixed(1)} s` : ""),
  stock: "Stock",
  pile: "Discards",
  stockLeft: (n) => plural(n, "card"),
  handLabel: "Your hand",
  handOf: (name) => `${name}'s hand`,
  cardsHeld: (n) => plural(n, "card"),
  known: "known to be held",
  deadwood: (n) => `Deadwood ${n}`,
  afterDiscard: (n) => `leaves ${n}`,
  sortSuit: "By suit",
  sortRank: "By rank",
  sortMelds: "By melds",
  sortLabel: "Sort the hand",
  meld: "meld",
  drawn: "just drawn",
  pickDiscard: "Choose a card to discard.",
  pickDraw: "Draw from the stock, or take the discard.",
  pickOffer: "Take the first discard, or pass.",
  pickForced: "Draw from the stock.",
  pickTake: "The stock is empty: take from the discards, or end the round.",
  pickEnd: "The stock is empty: end the round.",
  pickAny: "Choose an action.",
  pickPlay: "Lay cards, or choose a card to discard.",
  mustPlay: (card) => `You took ${cardText(card)}: play it before you discard.`,
  scoreLine: (name, { laid, held, score }) => `${name}: ${laid} laid − ${held} in hand = ${whole(score)}`,
  carried: ({ totals, rounds, target }, names) =>
    `After ${plural(rounds, "round")} of a match to ${target}: ${names.map((name, seat) => `${name} ${whole(totals[seat])}`).join(", ")}`,
  moves: "Moves",
  advice: "Advice",
  beliefs: "Beliefs",
  noMoves: "No move yet.",
  next: "Next round",
  newMatch: "New game",
  reviewRound: "Review this round",
  score: "Score",
  pot: (n) => `Pot ${n}`,
  chips: (n) => plural(n, "chip"),
  publicCard: "Table card",
  faceDown: "face down",
  bids: "Bids",
  noBids: "no bid yet",
  die: (face) => `die showing ${face}`,
  paused: "Paused",
  pause: "Pause",
  goOn: "Go on",
  matchWon: (names, score) => `${names.join(", ")} ${names.length > 1 ? "share" : "wins"} the match with ${whole(score)}.`,
  advisor: "Advisor",
  askHint: "Give me a hint",
  askBelief: "What is hidden?",
  hintLead: "The advisor's choice, and what each action is expected to bring.",
  hintWait: "A hint can be had when it is your turn.",
  preparing: "Getting ready …",
  stop: "Stop",
  action: "Action",
  chance: "Plays",
  expected: (unit) => `Expected ${unitText(unit)}`,
  intervalText: (row) => `${signed(row.low)} to ${signed(row.high)} with 95 % confidence`,
  hintNote: (hint) => (hint.worlds
    ? `From ${hint.worlds} deals that fit what you have seen, each played to its end. ± is a 95 % interval.${hint.final ? "" : " Sharpening …"}`
    : `The choice of ${hint.advisor}. Expected ${unitText(hint.unit)} follow …`),
  noValues: (why) => `Expected points cannot be had: ${errorText(why)}.`,
  beliefLead: "How likely each card is to be in another hand, in per cent; outs; and how dangerous each discard is.",
  beliefOver: "The round is over: all cards are on the table.",
  beliefOf: (name) => `In ${name}'s hand`,
  beliefNote: (b) => (b.weighted
    ? `An estimate from ${b.worlds} deals that fit what you have seen, weighted by how well the moves so far fit a player like ${b.weighed_by}, softly enough that they are worth ${Math.round(b.effective)} equal deals.`
    : `An estimate from ${b.worlds} deals that fit what you have seen, all weighing the same.`),
  truthNote: "It was the last before the round ended; rings show where the cards were at its end.",
  own: "your own",
  knockTitle: "Knock",
  knockText: (b) => `${KNOCKS[b.knock]} (deadwood ${b.deadwood}). With the next card: ${percent(b.knock_next)} to knock, ${percent(b.gin_next)} for gin.`,
  outsTitle: (b) => `Outs: ${percent(b.outs_chance)} to improve with the next card`,
  outText: (out) => `${cardName(out.card)} leaves ${out.left}; ${percent(out.chance)} to be next`,
  noOuts: "No single card lowers your deadwood.",
  dangerTitle: "Danger of each discard",
  dangerNote: "The chance that the card makes a meld with two cards of the opponent's.",
  review: "Review",
  stepOf: (n, all) => `Move ${n} of ${all}`,
  roundOver: "The round is over.",
  first: "First move",
  previous: "Previous move",
  following: "Next move",
  last: "Last move",
  playOn: "Play on from here",
  back: "Back to the table",
  reviewing: (name, n, all) => `${name} looks at move ${n} of ${all} …`,
  reviewDone: (name) => `Every move as ${name} sees it.`,
  worstTitle: "What cost most",
  noWorst: "No move was surely worse than another.",
  costText: (cost, margin) => `−${cost.toFixed(1)} ± ${margin.toFixed(1)}`,
  opinion: (advisor, name) => `${advisor} in the place of ${name}`,
  tryInstead: (choice) => `Play on: ${choiceText(choice)}`,
  reviewOf: "Round to review",
  previousRound: "Previous round",
  nextRound: "Next round",
  goToRound: "Go to round",
  goTo: "Go",
  ofRounds: (n) => `of ${n}`,
  notReadable: "cannot be read",
  finishedRounds: "Finished rounds, to review",
  roundLine: ({ round, viewer, names, points }) =>
    `${T.round(round)}: ${!names.length ? T.notReadable : names.map((name, seat) => `${seat === viewer ? T.you : playerText(name) ?? T.seat(seat)} ${signed(points[seat], Number.isInteger(points[seat]) ? 0 : 1)}`).join(", ")}`,
  recordOf: (rounds) => `The file holds ${plural(rounds, "round")}.`,
  recordTooLarge: (size, most) => `The file has ${size} bytes; it may have ${most}.`,
  keysTitle: "Keys",
  keys: [
    ["← →", "move along the hand"],
    ["Enter", "choose a card; again to discard it"],
    ["S", "draw from the stock"],
    ["T", "take the discard"],
    ["P", "pass"],
    ["D", "discard the chosen card"],
    ["K", "knock or go gin: with the chosen card, else with the best one"],
    ["1 … 9", "the actions in the bar, in order"],
    ["N", "next round"],
    ["H", "hint"],
    ["B", "beliefs"],
    ["R", "sort the hand another way"],
  ],
  dragHelp: "With a mouse or finger: click a card and then the discards, or drag it there.",
};

// What is not in a table, such as a game from outside, goes by its own name.
const found = (table, key) => (Object.hasOwn(table, key) ? table[key] : undefined);

const GAMES = {
  dark_hex: "Dark Hex",
  gin_rummy: "Gin rummy",
  gin_rummy_mdp: "Gin rummy, 16 actions",
  gin_rummy_openspiel: "Gin rummy, OpenSpiel's",
  kuhn_poker: "Kuhn poker",
  leduc_poker: "Leduc poker",
  liars_dice: "Liar's dice",
  mini_gin_rummy: "Mini gin rummy",
  phantom_ttt: "Phantom tic-tac-toe",
  rummy500: "Rummy 500",
};
export const gameText = (game) => found(GAMES, game) ?? game[0].toUpperCase() + game.slice(1).replaceAll("_", " ");

const VARIANTS = {
  gin_rummy: { standard: "gin 50, undercut 50", bonus_25: "gin 25, undercut 25", gin_only: "gin only" },
  gin_rummy_mdp: { standard: "gin 25, undercut 25", exact_layoff: "layoffs at the joint optimum" },
  gin_rummy_openspiel: { standard: "knock card 10", oklahoma: "Oklahoma" },
  liars_dice: { standard: "one die each" },
  mini_gin_rummy: { "4x2": "4 ranks, 2 suits", "3x3": "3 ranks, 3 suits", "5x2": "5 ranks, 2 suits" },
  rummy500: { players_2: "2 players", players_3: "3 players", players_4: "4 players" },
};
const ANY_GAME = { standard: "standard", record: "record" };
const RULES_OF = "of:"; // before the player whose rules a variant has
export const variantText = (game, key) => (key.startsWith(RULES_OF)
  ? `rules of ${key.slice(RULES_OF.length)}`
  : found(found(VARIANTS, game) ?? ANY_GAME, key) ?? found(ANY_GAME, key) ?? key);
export const tableText = ({ game, variant }) => `${gameText(game)} · ${variantText(game, variant)}`;

const UNITS = { points: "points", chips: "chips" };
const unitText = (unit) => found(UNITS, unit) ?? unit;

// What the server refuses, by its code.
const ERRORS = {
  library: ({ text }) => text,
  hello_first: () => "The first message must be hello",
  not_text: () => "The server takes messages of text",
  no_json: () => "The server takes messages in JSON",
  no_object: () => "The server takes messages that are JSON objects",
  message_too_large: ({ size, most }) => `The message has ${size} characters; it may have ${most}`,
  part_too_large: ({ size, most }) => `The part of a file has ${size} characters; it may have ${most}`,
  unknown_type: ({ given }) => `The server knows no message of type ${given}`,
  unknown_field: ({ message, field }) => `A message of type ${message} has no field ${field}`,
  wrong_field: ({ message, field, given }) => `A message of type ${message} cannot have ${given} as its ${field}`,
  no_match: () => "There is no such table; it may have been forgotten",
  no_round: () => "There is no such round to review",
  no_position: () => "There is no such position to play on from",
  unknown_game: ({ game }) => `There is no game ${game}`,
  unknown_variant: ({ game, variant }) => `${gameText(game)} has no rules ${variantText(game, variant)}`,
  unknown_player: ({ game, player }) => `${gameText(game)} has no player ${player}`,
  wrong_seats: ({ game, given, needed }) => `${plural(given, "seat")} taken; ${gameText(game)} has ${needed}`,
  two_people: () => "One person may play; the other seats are of players by name",
  moved_on: () => "The game has moved on",
  not_your_turn: () => "It is not your turn",
  not_legal: ({ action }) => `Action ${action} is not legal`,
  round_over: () => "The round is over",
  round_not_over: () => "The round is not over",
  match_over: () => "The match is over",
  cannot_deal: ({ game }) => `${gameText(game)} by these rules cannot deal anew what a player does not see`,
  no_numbers: ({ player }) => `${player} gives what is no number in a deal that fits what was seen`,
  no_beliefs: ({ game }) => `${gameText(game)} has no cards to have beliefs about`,
  nothing_hidden: () => "There is nothing to guess now",
  no_record: () => "The file holds no record",
  file_too_large: ({ most }) => `A file of records may have ${most} characters`,
  busy: () => "The server is reading other files; try again in a moment",
  not_kept: ({ file, reason }) => `The round could not be kept in ${file} (${reason})`,
};
export const errorText = ({ code, params }) => found(ERRORS, code)?.(params) ?? code;

const KNOCKS = {
  now: "You can knock now",
  discard: "You can knock after this discard",
  draw: "You can knock after your next draw",
  no: "You cannot knock yet",
};

const VERBS = {
  stock: ["You draw", "draws from the stock"],
  take: ["You take", "takes"],
  pass: ["You pass", "passes"],
  discard: ["You discard", "discards"],
  knock: ["You knock with", "knocks with"],
  gin: ["You go gin with", "goes gin with"],
  check: ["You check", "checks"],
  fold: ["You fold", "folds"],
  bet: ["You bet", "bets"],
  call: ["You call", "calls"],
  raise: ["You raise", "raises"],
  bid: ["You bid", "bids"],
  liar: ["You call: liar!", "calls: liar!"],
  lay: ["You lay", "lays"],
  layoff: ["You lay off", "lays off"],
  end: ["You play on", "plays on"],
  done: ["You are done", "is done"],
};

const ENDS = ["You end the round: the stock is empty", "ends the round: the stock is empty"];

const PLACES = { set: "on its set", low: "at the low end", high: "at the high end" };
const placeText = (move) => (move.where ? ` ${PLACES[move.where]}` : "");

const bidText = ([quantity, face]) => `${quantity} × ${face}`;

export function moveText(move, isYou) {
  const verb = move.ends ? ENDS : VERBS[move.kind];
  if (!verb) return move.label ?? "moves";
  const about = move.bid ? bidText(move.bid) : cardsText(move.cards ?? []);
  return `${isYou ? verb[0] : verb[1]}${about ? ` ${about}` : ""}${placeText(move)}`;
}

const LABELS = {
  stock: (c) => (c.ends ? "End the round: the stock is empty" : "Draw from the stock"),
  take: (c) => `Take ${cardsText(c.cards.slice(0, 1))}${c.cards.length > 1 ? ` and ${c.cards.length - 1} above` : ""}`,
  pass: () => "Pass",
  discard: (c) => `Discard ${cardsText(c.cards)}`,
  knock: (c) => (c.cards.length ? `Knock with ${cardsText(c.cards)}` : "Knock"),
  gin: (c) => (c.cards.length ? `Gin with ${cardsText(c.cards)}` : "Gin"),
  check: () => "Check",
  fold: () => "Fold",
  bet: () => "Bet",
  call: () => "Call",
  raise: () => "Raise",
  bid: (c) => bidText(c.bid),
  liar: () => "Liar!",
  lay: (c) => `Lay ${cardsText(c.cards)}`,
  layoff: (c) => `Lay off ${cardsText(c.cards)}${placeText(c)}`,
  end: () => "Play on",
  done: () => "Done",
};
export const choiceText = (choice) => (LABELS[choice.kind] ? LABELS[choice.kind](choice) : choice.label);

const TERMS = {
  deadwood: "deadwood",
  own_deadwood: "own deadwood",
  gin_bonus: "gin bonus",
  big_gin_bonus: "big gin bonus",
  undercut_bonus: "undercut bonus",
};

export function sumText(terms, total) {
  const parts = terms.map(({ points }, n) => (n === 0 ? whole(points) : `${points < 0 ? "−" : "+"} ${whole(Math.abs(points))}`));
  return `${parts.join(" ")} = ${whole(total)}`;
}
export const termsText = (terms) => terms.map(({ kind, points }) => `${TERMS[kind] ?? kind} ${whole(Math.abs(points))}`).join(", ");

export function endingText(settlement, name, you) {
  const who = (seat) => (seat === you ? "You" : name(seat));
  const verb = (seat, one, other) => `${who(seat)} ${seat === you ? one : other}`;
  const { ending, winner, knocker, total } = settlement;
  switch (ending) {
    case "tie": return winner === undefined ? "Nobody knocked. The round is a tie." : "Equal cards. The round is a tie.";
    case "gin": return `Gin! ${verb(knocker, "win", "wins")} ${whole(total)} points.`;
    case "knock": return winner === null ? "Equal deadwood. Nobody scores." : `${verb(knocker, "knock and win", "knocks and wins")} ${whole(total)} points.`;
    case "undercut": return `Undercut! ${verb(winner, "win", "wins")} ${whole(total)} points.`;
    case "fold": return `${verb(winner, "win", "wins")} ${plural(total, "chip")}; the other folded.`;
    case "showdown": return `${verb(winner, "win", "wins")} ${plural(total, "chip")} at the showdown.`;
    case "called": return `There ${settlement.found === 1 ? "is 1 die" : `are ${settlement.found} dice`} of that face. ${verb(winner, "win", "wins")}.`;
    case "out": return `${verb(winner, "go out", "goes out")}.`;
    default: return "The round is over.";
  }
}
