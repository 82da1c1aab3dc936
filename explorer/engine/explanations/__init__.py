"""Other training sets that explain the same weights: split, sampled, forced, farthest."""
