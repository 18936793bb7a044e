"""Search for the settings of models on validation: studies, trials, and what comes out of them."""
