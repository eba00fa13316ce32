"""The `agui` command. One module per subcommand; `main` finds them.

main               the parser of the command line
input, atomic_file a recording from a file or a pipe; an output that is whole or not there
escape             what strangers wrote, without control characters
transcript         messages and calls as text; `terminal`, `screen`, `live_text` put it on a terminal
chat_session       `agui chat`: a conversation at a prompt; `questions` asks people, `keyboard` reads them
"""
