"""Streams: how images arrive in online runs. Shifts one after the other, or a world that goes on changing."""
