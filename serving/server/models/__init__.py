"""Versions of models: as directories, loaded, and which of them are served."""
