"""JupyterHub on one machine: each user has a server of their own, which opens the page.

    jupyterhub --config deploy/jupyterhub_config.py

Needs `pip install jupyterhub 'margin-explorer[app]'` and the proxy, `npm install -g
configurable-http-proxy`. An authenticator is not chosen here: name the one of your school, or of
JupyterHub's documentation. Until then anybody who knows HUB_PASSWORD may come in under any name.
"""

import os
from pathlib import Path

import explorer
from explorer.research.pages import FOLDER

c = get_config()  # noqa: F821  (given by traitlets)

# Servers are processes of the hub's own user, so no account of the system is needed: for a class.
# Where users are not to be trusted with each other's files, take a spawner of containers.
c.JupyterHub.spawner_class = "simple"
c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = os.environ["HUB_PASSWORD"]
c.Authenticator.allow_all = True

# The page through Voila, with our settings, template and kernel; see binder/start.
settings = Path(explorer.__file__).parent / "serve" / "voila"
c.Spawner.environment = {
    "JUPYTER_CONFIG_PATH": str(settings),
    "JUPYTER_PATH": str(settings),
    "OMP_NUM_THREADS": "1",
}
c.Spawner.notebook_dir = str(FOLDER)
c.Spawner.default_url = "/voila/render/explorer.ipynb"
c.Spawner.start_timeout = 120

# A user who left: the kernel goes after 75 s (voila.py), the server after ten minutes.
c.Spawner.args = ["--ServerApp.shutdown_no_activity_timeout=600"]
