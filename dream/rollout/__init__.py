"""Playing games with the learner: against itself, or against opponents."""
