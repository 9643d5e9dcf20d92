//! Thin, safe wrappers over the Linux calls Noctule needs.
