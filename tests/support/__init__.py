"""What the tests share.

Builders: `events` (each event and message), `call_streams` (runs with tool calls), `chats` (agents that follow a
script), `loop_runs` (runs of a `ToolLoop`), `strategies` (streams drawn by Hypothesis; their grammar is
`stream_author`, what it remembers is `stream_ledger`), `hello_stream` (a run with a bit of everything) and
`full_documents` (every event with every member, and what may be changed in it); how many are drawn: `properties`.
Harness: `folding` (a stream to its end or its refusal), `rule_cases` (a stream through every way in), `corpora` (where
the public recordings are), `clocks` (time that a test moves).
Peers: `asgi` (calls an application), `endpoint` and `loopback` (servers that answer as a test says), `watched` (a
source that says what became of it), `langgraph_assistant`.
"""
