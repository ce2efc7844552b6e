"""Documents of YAML or JSON, from files, directories and standard input."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from betimes.cli.said import content_of


def documents_in(
    files: Sequence[str], *, tags: bool = False
) -> Iterator[tuple[str, list[Any] | str]]:
    """Every file with its documents, or with what is wrong about it.

    With `tags`, `!Ref x` is read as {"Ref": x}, as templates of CloudFormation mean it.
    """
    import yaml  # noqa: PLC0415 -- only here

    class Loader(yaml.SafeLoader):
        """Ours alone, so that nobody else's has tags."""

    if tags:
        Loader.add_multi_constructor("!", _tagged)
    for name in files:
        place = Path(name)
        inner = _inner(place) if name != "-" and place.is_dir() else [place]
        for file in inner:
            shown = "standard input" if name == "-" else str(file)
            try:
                text = content_of("-" if name == "-" else f"@{file}")
                yield shown, list(yaml.load_all(text, Loader))
            except yaml.YAMLError as fault:
                told = " ".join(str(fault).split())
                yield shown, f"it is no YAML (a template is to be rendered first): {told[:200]}"


def _tagged(loader: Any, name: str, node: Any) -> dict[str, Any]:
    if node.id == "scalar":
        return {name: loader.construct_scalar(node)}
    deep = loader.construct_sequence if node.id == "sequence" else loader.construct_mapping
    return {name: deep(node, deep=True)}


def _inner(folder: Path) -> list[Path]:
    return sorted(one for one in folder.rglob("*") if one.suffix in (".yaml", ".yml", ".json"))
