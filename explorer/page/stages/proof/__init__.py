"""The last act of Explain: where a point must be; its commands, panel and words."""
