"""What scripts share: their arguments, training runs that they start, records of runs, blocks of played rounds."""
