"""Text as documents and sentences: readers, what is kept of them, sentence splitting."""
