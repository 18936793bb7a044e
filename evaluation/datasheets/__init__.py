"""Descriptions of data files, and the list of published datasets."""
