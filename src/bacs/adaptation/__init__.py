"""Adapting one model: which statistics batch norm uses, the step on objective - beta log q, passes over the data."""
