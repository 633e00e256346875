"""Studies over HTTP, and a page that shows them live: `partita serve`."""
