"""The path by which older code imports `Audit`; it stands in `explorer.research.audit.result`."""

from explorer.research.audit.result import Audit as Audit
