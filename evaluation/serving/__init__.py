"""A small HTTP server for exported models, and the page to try them."""
