"""The `agui` command. One module per subcommand; start with `main`, which lists them.

main               the parser of the command line, and the exit status
arguments          arguments that several commands take
input, atomic_file a recording from a file or a pipe; an output file that is written as a whole
line_numbers       the line of each event, for `verify`
pacing             the pauses of a recording, for `watch` and `serve`; `replay` is the endpoint of `serve`
escape, terminal   text from outside without control characters; emphasis and progress
transcript         a conversation as text, all of it (`reduce`) or its end (`screen`, for `watch`)
live_text          a conversation as text while it grows, for `chat_session`, the prompt of `chat`
questions          approvals and answers at that prompt; `keyboard` reads the lines
demo_agent         the tools and rules of `demo`
"""
