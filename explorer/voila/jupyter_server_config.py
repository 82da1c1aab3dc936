"""The same settings for Voila inside a Jupyter server (Binder, a Hub); see voila.py."""

load_subconfig("voila.py")  # noqa: F821  (given by traitlets)
