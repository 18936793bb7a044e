"""Trains the models of a run on several hosts, which TF_CONFIG names: the first one leads, the others take part."""
