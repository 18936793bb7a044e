"""The experimenter's desk: commands that run recipes, compare their results and show them."""
