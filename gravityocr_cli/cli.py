"""The commands: options become Settings, one public call follows, its outcome becomes an exit code; nothing else.

Only Typer is imported up here, so that `--help` answers at once; everything heavy is imported inside the commands.
"""

import sys
from pathlib import Path
from typing import Annotated, cast

import typer

from gravityocr_cli import errors
from gravityocr_cli.settings import Decode, PageRanges, Settings, TextLayer, help_of

app = typer.Typer(
    name="gravityocr",
    help="PDF to Markdown with a model in the same process.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"gravityocr {version('gravityocr')}")
        raise typer.Exit


@app.callback()
def common(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """PDF to Markdown with a model in the same process."""


LayerOption = Annotated[TextLayer, typer.Option("--text-layer", help=help_of("text_layer"))]
ModelOption = Annotated[Path | None, typer.Option("--model", help=help_of("model"))]
DeviceOption = Annotated[str, typer.Option("--device", help=help_of("device"))]
DtypeOption = Annotated[str, typer.Option("--dtype", help=help_of("dtype"))]
BlockOption = Annotated[int | None, typer.Option("--block", help=help_of("block"))]
LimitOption = Annotated[int | None, typer.Option("--limit", help="Take only the first N.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]


@app.command()
def convert(
    inputs: Annotated[list[Path], typer.Argument(metavar="INPUT...", help="PDF or image files.")],
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", help="A file for one input, a folder for several, - for standard output (default)."
        ),
    ] = None,
    pages: Annotated[str | None, typer.Option("--pages", help=help_of("pages"))] = None,
    text_layer: LayerOption = TextLayer.AUTO,
    decode: Annotated[Decode, typer.Option("--decode", help=help_of("decode"))] = Decode.AUTO,
    block: BlockOption = None,
    model: ModelOption = None,
    device: DeviceOption = "auto",
    dtype: DtypeOption = "auto",
    page_break: Annotated[str | None, typer.Option("--page-break", help=help_of("page_break"))] = None,
    images: Annotated[bool, typer.Option("--images/--no-images", help=help_of("images"))] = True,
    headers_footers: Annotated[bool, typer.Option("--headers-footers", help=help_of("headers_footers"))] = False,
    password: Annotated[
        str | None,
        typer.Option("--password", envvar="GRAVITYOCR_PASSWORD", show_envvar=True, help=help_of("password")),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write what happened to every region as JSON.")
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress and no warnings.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="A line for every page.")] = False,
) -> None:
    """Convert documents to Markdown."""
    settings = Settings(
        pages=PageRanges.parse(pages) if pages else PageRanges(),
        text_layer=text_layer,
        decode=decode,
        block=block,
        model=model,
        device=device,
        dtype=dtype,
        page_break=page_break,
        images=images,
        headers_footers=headers_footers,
        password=password,
    )
    from gravityocr_cli.run import convert_all

    raise typer.Exit(convert_all(inputs, output, settings, report, quiet, verbose))


@app.command("eval")
def evaluate(
    folder: Annotated[Path, typer.Argument(help="Folder of documents, each with page.pdf or page.png and truth.json.")],
    text_layer: LayerOption = TextLayer.AUTO,
    limit: LimitOption = None,
    as_json: JsonOption = False,
) -> None:
    """Convert documents with known content and score the result."""
    from gravityocr_cli import evaluate as command

    raise typer.Exit(command.run(folder, text_layer=text_layer, limit=limit, as_json=as_json))


@app.command()
def bench(
    folder: Annotated[Path, typer.Argument(help="Folder of documents to take crops from.")],
    limit: LimitOption = None,
    block: BlockOption = None,
    batch: Annotated[int | None, typer.Option("--batch", help="Crops read at once.")] = None,
    text_layer: LayerOption = TextLayer.OFF,
    as_json: JsonOption = False,
) -> None:
    """Measure plain against speculative decoding on the crops of real pages."""
    from gravityocr_cli import bench as command

    raise typer.Exit(command.run(folder, limit=limit, block=block, batch=batch, text_layer=text_layer, as_json=as_json))


# The base of Typer's own usage errors; the public name of the class has moved between its versions.
_TyperUsageError: type[Exception] = cast(type[Exception], typer.BadParameter.__mro__[1])


def run(arguments: list[str]) -> int:
    """Runs the command line and returns the exit code; a known error becomes one line on standard error.

    Raises KeyboardInterrupt on Ctrl-C.
    """
    try:
        result = app(arguments, prog_name="gravityocr", standalone_mode=False)
    except errors.GravityOcrError as error:
        print(f"gravityocr: {error}", file=sys.stderr)
        return error.exit_code
    except typer.Abort as error:  # what Typer makes of Ctrl-C
        raise KeyboardInterrupt from error
    except _TyperUsageError as error:
        print(f"gravityocr: {error}".rstrip() + " (see gravityocr --help)", file=sys.stderr)
        return errors.UsageError.exit_code
    return result if isinstance(result, int) else 0
