"""`bacs serve`: one process that owns one live stream, a queue before it, and a page to watch it.

A request travels: access -> body -> pictures or tensors -> queue -> worker (the only one who touches the stream) ->
answers. The page, the metrics and the log read what the worker wrote down; they never touch the stream.
"""
