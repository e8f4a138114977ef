"""Melds and combos of rummy hands from two decks: the hand evaluator.

A hand is a multiset of cards, each at most twice. A run is three or more consecutive ranks of one suit, the ace low; a
set is three or four cards of one rank in distinct suits. A combo is a multiset of melds and the dump, the cards left.
"""

from envs.hand_evaluator.batched import best_dump_points
from envs.hand_evaluator.combo import JOKER, Combo, read_card
from envs.hand_evaluator.evaluator import HandEvaluator, Island

__all__ = ["JOKER", "Combo", "HandEvaluator", "Island", "best_dump_points", "read_card"]
