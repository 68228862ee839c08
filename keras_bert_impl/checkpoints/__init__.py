"""Readers and writers of weights, one file per format."""
