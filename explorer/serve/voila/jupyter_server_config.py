"""The same settings for Voila inside a Jupyter server (Binder, a Hub); see voila.py."""

load_subconfig("voila.py")  # noqa: F821  (given by traitlets)

# Its kernels have their files in a home, which may lie where no socket can be.
get_config().KernelManager.transport = "tcp"  # noqa: F821

# Its user may leave a notebook of their own at work.
get_config().MappingKernelManager.cull_busy = False  # noqa: F821

# Its user also runs notebooks of their own, and wants to see why one fails.
get_config().MappingKernelManager.allow_tracebacks = True  # noqa: F821
