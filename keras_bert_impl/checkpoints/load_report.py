"""What a load did, and what it left."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadReport:
    """Names of tensors, as the file has them, by what became of them.

    Attributes:
        source: the file.
        loaded: read into the model.
        newly_initialised: in the model, absent from the file; they start fresh.
        unused: in the file, not in the model.
        wrong_shape: name, shape in the file, shape in the model.
        passed_over: in the file, with nothing new in them: buffers, and copies of tied tensors.
        ignored_config_keys: keys of `config.json` that are not fields of `BertConfig`.
    """

    source: str
    loaded: tuple[str, ...] = ()
    newly_initialised: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    wrong_shape: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = ()
    passed_over: tuple[str, ...] = ()
    ignored_config_keys: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every tensor of the file was loaded and every tensor of the model came from it."""
        return not (self.newly_initialised or self.unused or self.wrong_shape)

    def __str__(self) -> str:
        lines = [f"{self.source}: {len(self.loaded)} tensors loaded"]
        lines += [f"  newly initialised: {name}" for name in self.newly_initialised]
        lines += [f"  unused: {name}" for name in self.unused]
        lines += [
            f"  wrong shape: {name}, {there} in the file, {here} in the model" for name, there, here in self.wrong_shape
        ]
        lines += [f"  nothing new in: {name}" for name in self.passed_over]
        if self.ignored_config_keys:
            lines.append(f"  config.json keys passed over: {', '.join(self.ignored_config_keys)}")
        return "\n".join(lines)
