"""Numbers as they are said in a sentence."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Returns the number with its noun, which takes an s (or its own plural) unless there is one."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


def shown(name: str) -> str:
    """Returns a name on one line that moves nothing on the screen: what cannot be printed is escaped."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in name)


def percent(share: float, digits: int = 0) -> str:
    """Returns a share in percent, rounded; 0 and 100 are said only of none and of all."""
    rounded, step = f"{share:.{digits}%}", 10.0**-digits
    if share > 0 and float(rounded[:-1]) == 0:
        return f"under {step:.{digits}f}%"
    if share < 1 and float(rounded[:-1]) == 100:
        return f"over {100 - step:.{digits}f}%"
    return rounded


def size_in_words(size: int) -> str:
    """Returns a number of bytes in the largest unit of which there is one, such as `'1.3 GB'`."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return counted(size, "byte")
