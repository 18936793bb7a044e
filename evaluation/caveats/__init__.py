"""What a reader must know beside the numbers of a run: sentences that the table, LaTeX and the page all show."""
