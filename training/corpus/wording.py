"""Numbers as they are said in a sentence."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Returns the number with its noun, which takes an s (or its own plural) unless there is one."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


def size_in_words(size: int) -> str:
    """Returns a number of bytes in the largest unit of which there is one."""
    if size < 1000:
        return counted(size, "byte")
    return f"{size / 1e3:,.1f} kB" if size < 1e6 else f"{size / 1e6:,.1f} MB"
