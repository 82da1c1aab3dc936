"""The loss of stationarity and its steps, once per purpose; `reference` is the definition."""
