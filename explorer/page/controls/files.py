"""A file that the page offers as a link."""

from __future__ import annotations

import base64


def link(name: str, kind: str, data: bytes) -> str:
    """Return a download; the link holds the bytes, so it works after its kernel has ended."""
    coded = base64.b64encode(data).decode()
    size = f"{max(1, len(data) // 1024):,} kB"
    return f"<a download='{name}' href='data:{kind};base64,{coded}'>Download {name}</a> ({size})"
