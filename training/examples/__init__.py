"""Pretraining examples: sentence pairs in random-access shards, their order and their masks."""
