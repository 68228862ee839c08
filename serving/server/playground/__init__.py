"""The page for trying models, which the local server shows: files as they are, nothing from elsewhere."""

from .playground import PATHS, Playground

__all__ = ["PATHS", "Playground"]
