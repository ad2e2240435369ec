"""The commands: options become Settings, one public call follows, its outcome becomes an exit code; nothing else.

Only Typer is imported up here, so that `--help` answers at once; everything heavy is imported inside the commands.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from gravityocr_cli import errors
from gravityocr_cli.settings import (
    NAMES,
    Decode,
    Format,
    LogFormat,
    Math,
    Tables,
    TextLayer,
    flag_of,
    help_of,
)
from gravityocr_cli.streams import printable, say

if TYPE_CHECKING:
    from gravityocr_cli.configfile import Resolved

app = typer.Typer(
    name="gravityocr",
    help="PDF to Markdown with a model in the same process.",
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


def _option(name: str, *flags: str) -> Any:
    """The option of a setting. Without it: the environment, the configuration file, the default (`configfile.py`)."""
    return typer.Option(*(flags or (flag_of(name),)), help=help_of(name), show_default=False)


BlockOption = Annotated[int | None, _option("block")]
LimitOption = Annotated[int | None, typer.Option("--limit", help="Take only the first N.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="TOML file of settings, named like the flags without their dashes.")
]
OfflineOption = Annotated[bool | None, _option("offline", "--offline")]
ModelOption = Annotated[str | None, _option("model")]
DeviceOption = Annotated[str | None, _option("device")]
DtypeOption = Annotated[str | None, _option("dtype")]


def _resolved(context: typer.Context, config: Path | None) -> "Resolved":
    """The settings of a command: its options that carry a setting's name are read from the context, not one by one."""
    from gravityocr_cli.configfile import resolve

    flags = {name: value for name, value in context.params.items() if name in NAMES and value is not None}
    resolved = resolve(flags, os.environ, config)
    if resolved.settings.offline:
        from gravityocr_cli.checkpoints import refuse_network

        refuse_network()
    return resolved


@app.command()
def convert(
    context: typer.Context,
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT...", help="PDF or image files, folders, or - for standard input.")
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", help="A file for one input, a folder for several, - for standard output (default)."
        ),
    ] = None,
    pages: Annotated[str | None, _option("pages")] = None,
    format: Annotated[Format | None, _option("format")] = None,
    text_layer: Annotated[TextLayer | None, _option("text_layer")] = None,
    tables: Annotated[Tables | None, _option("tables")] = None,
    math: Annotated[Math | None, _option("math")] = None,
    decode: Annotated[Decode | None, _option("decode")] = None,
    block: BlockOption = None,
    model: ModelOption = None,
    device: DeviceOption = None,
    dtype: DtypeOption = None,
    page_break: Annotated[str | None, _option("page_break")] = None,
    images: Annotated[bool | None, _option("images", "--images/--no-images")] = None,
    headers_footers: Annotated[bool | None, _option("headers_footers", "--headers-footers")] = None,
    password: Annotated[str | None, _option("password")] = None,
    password_file: Annotated[Path | None, _option("password_file")] = None,
    jobs: Annotated[int | None, _option("jobs")] = None,
    timeout: Annotated[float | None, _option("timeout")] = None,
    page_timeout: Annotated[float | None, _option("page_timeout")] = None,
    max_pixels: Annotated[int | None, _option("max_pixels")] = None,
    layout_model: Annotated[str | None, _option("layout_model")] = None,
    resume: Annotated[bool | None, _option("resume", "--resume")] = None,
    overwrite: Annotated[bool | None, _option("overwrite", "--overwrite/--no-overwrite")] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write what happened to every region as JSON.")
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the report as one JSON object; without -o, with the documents in it."),
    ] = False,
    log_format: Annotated[LogFormat | None, _option("log_format")] = None,
    quiet: Annotated[bool | None, _option("quiet", "-q", "--quiet")] = None,
    verbose: Annotated[bool | None, _option("verbose", "-v", "--verbose")] = None,
    offline: OfflineOption = None,
    config: ConfigOption = None,
) -> None:
    """Convert documents to Markdown.

    Every setting can also come from a variable (--text-layer: GRAVITYOCR_TEXT_LAYER) or from the file given with
    --config (text-layer = "draft"). A flag wins over the environment, that over the file.
    """
    settings = _resolved(context, config).settings
    if as_json and output == "-":
        raise errors.UsageError("--json and -o - both want standard output")
    from gravityocr_cli.run import convert_all

    raise typer.Exit(convert_all(inputs, output, settings, report, as_json))


@app.command()
def doctor(
    context: typer.Context,
    model: ModelOption = None,
    device: DeviceOption = None,
    dtype: DtypeOption = None,
    offline: OfflineOption = None,
    config: ConfigOption = None,
) -> None:
    """Check that conversions will work: versions, device, models, a page read from end to end, every setting."""
    from gravityocr_cli import doctor as command

    raise typer.Exit(command.run(_resolved(context, config)))


models = typer.Typer(help="The checkpoints on this machine.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(models, name="models")


@models.command("list")
def list_models() -> None:
    """List the checkpoints on this machine, and those that can be had: name, size, state, place."""
    from gravityocr_models import store

    for each in store.installed():
        state = f"incomplete: {each.missing[0]} is missing" if each.missing else "drafts" if each.drafts else "plain"
        print(f"{each.name}\t{each.size / 2**20:.0f} MiB\t{state}\t{each.folder}")
    for name in store.KNOWN:
        if name not in {each.name for each in store.installed()}:
            print(f"{name}\t-\tnot installed\tgravityocr models pull {name}")


@models.command("pull")
def pull_model(
    context: typer.Context,
    hub_id: Annotated[str, typer.Argument(metavar="HUB_ID", help="OWNER/NAME on the Hugging Face hub.")],
    offline: OfflineOption = None,
) -> None:
    """Fetch a checkpoint; goes on where an earlier pull stopped. The only command that needs a network."""
    from gravityocr_cli.checkpoints import pull

    print(pull(hub_id, _resolved(context, None).settings.offline))


@models.command("verify")
def verify_models(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Default: all of them.")] = None,
) -> None:
    """Compare checkpoints with their SHA256SUMS."""
    from gravityocr_cli.checkpoints import faults, folder_of
    from gravityocr_models import store

    folders = [folder_of(name) for name in names] if names else [each.folder for each in store.installed()]
    wrong = [fault for folder in folders for fault in faults(folder)]
    for fault in wrong:
        say(printable(f"gravityocr: {fault}"))
    if not wrong:
        print(f"{len(folders)} checkpoints are as their checksums say")
    raise typer.Exit(errors.ModelError.exit_code if wrong else 0)


@app.command("eval")
def evaluate(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(help="Documents with truth.json each, formula images with a .tsv, or OmniDocBench.")
    ],
    text_layer: Annotated[TextLayer | None, _option("text_layer")] = None,
    limit: LimitOption = None,
    as_json: JsonOption = False,
    report_html: Annotated[
        Path | None, typer.Option("--report-html", help="Write the worst pages, beside their truth.")
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option("--predictions", help="Score this folder's ID.md files, of whatever converter.")
    ] = None,
    model: ModelOption = None,
    device: DeviceOption = None,
    dtype: DtypeOption = None,
    config: ConfigOption = None,
) -> None:
    """Convert documents with known content and score the result."""
    settings = _resolved(context, config).settings
    from gravityocr_cli import evaluate as command

    code = command.run(
        folder,
        text_layer=settings.text_layer,
        limit=limit,
        as_json=as_json,
        report_html=report_html,
        predictions=predictions,
        settings=settings,
    )
    raise typer.Exit(code)


@app.command()
def inspect(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A PDF or an image.")],
    page: Annotated[int, typer.Option("--page", help="Which page, counted from 1.")] = 1,
    output: Annotated[Path, typer.Option("-o", "--output", help="The HTML file to write.")] = Path("inspect.html"),
    text_layer: Annotated[TextLayer | None, _option("text_layer")] = None,
    password_file: Annotated[Path | None, _option("password_file")] = None,
    model: ModelOption = None,
    device: DeviceOption = None,
    dtype: DtypeOption = None,
    config: ConfigOption = None,
) -> None:
    """Show how one page was read: regions, order, and the text by the forward pass that wrote it."""
    settings = _resolved(context, config).settings
    from gravityocr_cli import inspect as command

    raise typer.Exit(command.run(file, page, output, settings))


@app.command()
def bench(
    folder: Annotated[Path, typer.Argument(help="A document, or a folder of documents.")],
    limit: Annotated[int | None, typer.Option("--limit", min=0, help="Crops to decode, 0 for all.")] = None,
    pages: Annotated[int | None, typer.Option("--pages", min=0, help="Whole pages to read, 0 for none.")] = None,
    batch: Annotated[list[int] | None, typer.Option("--batch", min=1, help="Crops at once; may be repeated.")] = None,
    block: Annotated[
        list[int] | None, typer.Option("--block", min=0, help="Mask tokens a round, 0 for adaptive; may be repeated.")
    ] = None,
    text_layer: Annotated[TextLayer, typer.Option("--text-layer", help=help_of("text_layer"))] = TextLayer.OFF,
    peer: Annotated[bool, typer.Option("--peer/--no-peer", help="Also time transformers on the same weights.")] = True,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw the result into an SVG or PNG file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure plain against speculative decoding on the crops of real pages, and whole pages by stage."""
    from gravityocr_cli import bench as command

    code = command.run(
        folder,
        limit=limit,
        pages=pages,
        batches=batch,
        blocks=block,
        text_layer=text_layer,
        peer=peer,
        plot=plot,
        as_json=as_json,
    )
    raise typer.Exit(code)


# The base of Typer's own usage errors; the public name of the class has moved between its versions.
_TyperUsageError: type[Exception] = cast(type[Exception], typer.BadParameter.__mro__[1])


def run(arguments: list[str]) -> int:
    """Runs the command line and returns the exit code; a known error becomes one line on standard error.

    Raises KeyboardInterrupt on Ctrl-C.
    """
    try:
        result = app(arguments, prog_name="gravityocr", standalone_mode=False)
    except errors.GravityOcrError as error:
        say(printable(f"gravityocr: {error}"))
        return error.exit_code
    except typer.Abort as error:  # what Typer makes of Ctrl-C
        raise KeyboardInterrupt from error
    except _TyperUsageError as error:
        say(printable(f"gravityocr: {error}".rstrip() + " (see gravityocr --help)"))
        return errors.UsageError.exit_code
    return result if isinstance(result, int) else 0
