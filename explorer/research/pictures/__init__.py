"""Pictures of results: axes, colours and arrays of the plane, charts, and the painter on paper."""
