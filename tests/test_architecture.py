"""The one-way rule of the house, read from the imports of every module.

A module may import what stands before it, never what stands after; only models/ sees tensors; and the command line
answers `--help` without loading anything heavy.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CLI, MODELS = "gravityocr_cli", "gravityocr_models"
FOLDERS = {CLI: ROOT / CLI, MODELS: ROOT / "models"}

# Each row may import the rows above it, not itself and not those below.
MODELS_ROWS = (
    {"config", "memory", "store"},
    {"records", "tokenizer", "image", "attention", "cache", "graphs", "latex", "sequences", "glyphs", "signs"},
    {"compiled", "layers"},
    {"vision"},
    {"ink", "signshapes"},
    {"folding", "formulas", "looks", "verdict"},
    {"teds", "letters", "mathsigns"},
    {"mathatoms", "inkmatch"},
    {"mathrows", "inkglyphs"},
    {"mathlayout"},
    {"inkformula"},
    {"metrics", "ocr", "layout", "family", "reading"},
    {"weights", "drafters", "rounds", "times"},
    {"speculate"},
    {"engine"},
    {"peer"},
    {"measure"},
    {"yolo"},
    {"train"},
)
CLI_FIRST = ({"errors", "ink"}, {"document", "settings"})
CLI_LAST = (
    {"pipeline"},
    {"benchpages"},
    {"benchplot"},
    {"run", "doctor", "evaluate", "bench", "inspect"},
    {"cli"},
    {"__main__"},
)
HEAVY = {"torch", "torchvision", "transformers", "safetensors", "doclayout_yolo"}


def modules() -> Iterator[tuple[str, str, Path]]:
    """(package, module name inside it, file); `train.joint` for models/train/joint.py, "" for a package's own file."""
    for package, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            yield package, ".".join(part for part in parts if part != "__init__"), path


def imports(path: Path, package: str, module: str) -> set[str]:
    """Full names of what the file imports, those under TYPE_CHECKING and inside functions included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                within = (
                    [package, *module.split(".")][: -node.level] if path.name != "__init__.py" else [package, module]
                )
                source = ".".join(filter(None, [*within, source]))
            found.add(source)
            found.update(f"{source}.{alias.name}" for alias in node.names)
    return found


def inner(names: set[str], package: str) -> set[str]:
    """The package's own modules among the names, without the package: their first part."""
    return {name.split(".")[1] for name in names if name.startswith(f"{package}.")}


def row_of(rows: tuple[set[str], ...], module: str) -> int | None:
    return next((number for number, row in enumerate(rows) if module in row), None)


ALL = [pytest.param(*each, id=f"{each[0]}.{each[1]}".rstrip(".")) for each in modules()]


@pytest.mark.parametrize(("package", "module", "path"), ALL)
def test_models_never_import_the_command_line(package: str, module: str, path: Path) -> None:
    if package == MODELS:
        assert not {name for name in imports(path, package, module) if name.split(".")[0] == CLI}


@pytest.mark.parametrize(("package", "module", "path"), ALL)
def test_only_models_see_tensors(package: str, module: str, path: Path) -> None:
    if package == CLI:
        assert not {name.split(".")[0] for name in imports(path, package, module)} & HEAVY


@pytest.mark.parametrize(("package", "module", "path"), ALL)
def test_few_know_pymupdf(package: str, module: str, path: Path) -> None:
    used = {name.split(".")[0] for name in imports(path, package, module)} & {"pymupdf", "fitz"}
    assert not used or module in ("pdf", "painted") or (package == MODELS and module.startswith("train."))


@pytest.mark.parametrize(("package", "module", "path"), ALL)
def test_models_import_only_what_stands_before_them(package: str, module: str, path: Path) -> None:
    if package != MODELS or not module:
        return
    first = module.split(".")[0]
    own = row_of(MODELS_ROWS, first)
    assert own is not None, f"models/{first}.py has no place in MODELS_ROWS"
    for other in inner(imports(path, package, module), MODELS) - {first}:
        place = row_of(MODELS_ROWS, other)
        assert place is None or place < own, f"{module} imports {other}"


@pytest.mark.parametrize(("package", "module", "path"), ALL)
def test_stages_import_only_what_stands_before_them(package: str, module: str, path: Path) -> None:
    if package != CLI or not module:
        return
    used = inner(imports(path, package, module), CLI)
    first, last = row_of(CLI_FIRST, module), row_of(CLI_LAST, module)
    if first is not None:
        assert used <= set().union(*CLI_FIRST[:first])
    elif last is not None:
        assert not used & set().union(*CLI_LAST[last:])
    else:
        assert not used & set().union(*CLI_LAST), f"the stage {module} looks forward"


def test_help_loads_nothing_heavy() -> None:
    watched = sorted(HEAVY | {"numpy", "scipy", "pymupdf", "lxml", "PIL"})
    program = (
        "import sys\n"
        "sys.argv = ['gravityocr', '--help']\n"
        "from gravityocr_cli.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print('LOADED', *[name for name in {watched!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert "convert" in done.stdout
    assert done.stdout.splitlines()[-1].split() == ["LOADED"]


def test_the_readme_names_every_file() -> None:
    tree = (ROOT / "README.md").read_text("utf-8").split("## The tree")[1].split("## Train")[0]
    files = [path for folder in ("gravityocr_cli", "models", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    missing = [path.name for path in files if path.name != "__init__.py" and path.name not in tree]
    assert not missing
