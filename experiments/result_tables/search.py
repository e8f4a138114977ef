"""Tables of search with a policy and of where points go, as lines of Markdown."""

from __future__ import annotations

from typing import Any

from result_tables import common


def search_table() -> list[str]:
    """Returns the lines of the table: each player's points and rounds won, and what it wins more than the policy."""
    found = common.stored("gin_search")
    policy, rows = found["policy"], []
    for x in found["pairings"]:
        # The first block of a pairing compiles.
        blocks = x["core_seconds"][1:] or x["core_seconds"]
        per_round = 1000 * sum(blocks) / len(blocks) / (2 * x["deals"] / len(x["core_seconds"]))
        gain = x.get("gain", x.get("more_than_policy"))
        cells = [x["player"], x["opponent"], _signed(x["points_per_hand"]), "" if gain is None else _signed(gain)]
        rows.append([*cells, _percent(x["win_rate_excluding_ties"]), f"{x['deals']:,}", f"{per_round:.0f}"])
    stage = "" if policy["iteration"] is None else f", iteration {policy['iteration']}"
    paired = any("gain" in x for x in found["pairings"])
    return common.table(
        "player | against | points per hand | gain over the policy | rounds won, excluding ties | deals | "
        "core ms per round",
        rows,
        f"`{found['command']}`: the policy is `{policy['name']}`{stage}; mirrored deals, 95 % intervals by deal. "
        "Gains are over the policy's own result against the same opponent on the same deals"
        + ("; against the policy itself by paired playouts where the two decide differently, whose time is counted."
           if paired else "."),
    )  # fmt: skip


def beliefs_table(result: str = "gin_beliefs") -> list[str]:
    """Returns the lines of the table: what is true of the other hand, and believed of it in worlds of each kind."""
    found = common.stored(result)
    kinds, rows = list(found["beliefs"][0]["deadwood"]), []
    for x in found["beliefs"]:
        cells = [
            f"{x['deadwood'][kind][0]:.1f}, {100 * x['may_knock'][kind][0]:.0f} %"
            + ("" if kind == kinds[0] else f", {x['log_score'][kind][0]:.3f}")
            for kind in kinds
        ]
        rows.append([f"`{x['opponent']}`", x["actions"], x["decisions"], *cells])
    return common.table(
        " | ".join(["opponent", "actions so far", "decisions", *kinds]),
        rows,
        f"`{found['command']}`: `{found['player']}` meets each player. Mean deadwood, share of hands within the knock "
        "limit, and the log score of who holds each card never seen, in nats, lower is better.",
    )


def losses_table() -> list[str]:
    """Returns the lines of the tables: what each way a round ends adds to the points per hand, and what was decided."""
    stored = common.stored("gin_losses")
    columns = [(f"{player}, {opponent}", x) for player, by in stored["players"].items() for opponent, x in by.items()]
    results = [x for _, x in columns]
    rows = [["all", *(f"{x['rounds']:,} rounds: {_signed(x['points_per_hand'])}" for x in results)]]
    groups = (("", "causes"), ("knocks with ", "knocks"), ("knocks in its turn ", "knock_turns"),
              ("knocked against in turn ", "knocks_against_by_turn"))  # fmt: skip
    for before, group in groups:
        rows += [[f"{before}{name}", *(_part(x[group][name]) for x in results)] for name in results[0][group]]
    for name, label in (("player", "passed up a knock"), ("opponent", "the opponent passed up a knock")):
        rows.append([label, *(_part(x["waited"][name]) for x in results)])
    rows.append(["eight or fewer cards in the stock", *(_part(x["endgame"]) for x in results)])
    for name, label in (("player", "layoffs save it"), ("opponent", "layoffs save the opponent")):
        rows.append([label, *(_saved(x["layoffs"][name]) for x in results)])
    return common.table(
        " | ".join(["how the round ended", *(title for title, _ in columns)]),
        rows,
        "`experiments/gin_losses.py`: share of rounds, and what these add to the points per hand; mirrored deals.",
    )


def _signed(interval: list[float]) -> str:
    mean, low, high = interval
    return f"{mean:+.2f} ({low:+.2f} to {high:+.2f})"


def _percent(interval: list[float]) -> str:
    return f"{100 * interval[0]:.1f} % ({100 * interval[1]:.1f} to {100 * interval[2]:.1f})" if interval else ""


def _part(x: dict[str, Any]) -> str:
    return f"{100 * x['share']:.1f} %: {x['per_hand'][0]:+.2f}"


def _saved(x: dict[str, Any]) -> str:
    if x["saved"] is None:
        return ""
    return f"{x['saved']:.1f} points per knock, {100 * x['undercuts']:.1f} % undercut"
