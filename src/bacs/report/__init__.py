"""Tables and figures from records: what was measured in, what people look at out."""
