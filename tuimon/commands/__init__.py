"""What each command of the command line does. `tuimon.cli` reads the arguments and imports the one that is wanted."""
