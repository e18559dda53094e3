//! The remit command: thin subcommands over the libraries.
