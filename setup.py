"""The recipes are installed inside the package `aprec_like`: a package `recipes` could collide with another."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["aprec_like*", "evaluation*"]), "aprec_like.recipes"],
    package_dir={"aprec_like.recipes": "recipes"},
)
