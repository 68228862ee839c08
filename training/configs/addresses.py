"""HOST:PORT of several machines, as `--cluster` has them."""

import re

from keras_bert_impl.errors import InputError


def split_addresses(text: str, name: str = "cluster") -> tuple[str, ...]:
    """Returns the addresses in a list with commas, checked.

    Args:
        text: such as `"10.0.0.1:2222,10.0.0.2:2222"`. An IPv6 host stands in brackets.
        name: the setting that error messages name.

    Raises:
        InputError: if one is no HOST:PORT, one is there twice, or there is only one.
    """
    addresses = tuple(address.strip() for address in text.split(","))
    for address in addresses:
        if not address:
            raise InputError(f"{_rule(name)} Received: '' in {text!r}")
        split_address(address, name)
    if twice := [address for address in addresses if addresses.count(address) > 1]:
        raise InputError(f"`{name}` must have each address once. Received: {twice[0]!r} twice")
    if len(addresses) == 1:
        raise InputError(
            f"`{name}` must have the addresses of two machines or more; one alone trains without it. Received: {text!r}"
        )
    return addresses


def split_address(address: str, name: str = "cluster") -> tuple[str, int]:
    """Returns the host, without brackets, and the port of HOST:PORT; raises `InputError` if it is something else."""
    host, colon, port = address.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    plain_host = bool(bare) and not any(letter.isspace() or letter in "/@" for letter in host)
    if not colon or not plain_host or (":" in bare and bare == host):
        raise InputError(f"{_rule(name)} Received: {address!r}")
    if not (re.fullmatch("[0-9]{1,5}", port) and 1 <= int(port) <= 65535):
        raise InputError(f"`{name}` must have ports from 1 to 65535. Received: {address!r}")
    return bare, int(port)


def _rule(name: str) -> str:
    return f"`{name}` must be a list of HOST:PORT, separated by commas, with an IPv6 host in brackets."
