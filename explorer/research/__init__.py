"""Many runs without a page: train, aim, attack, judge; sweeps, grids, tuning, figures."""
