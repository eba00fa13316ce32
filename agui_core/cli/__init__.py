"""The `agui` command: reduce, check, compact and watch recorded streams. One module per subcommand."""
