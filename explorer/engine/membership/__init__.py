"""Membership inference in high dimension: the law, exact networks, the trained experiment."""
