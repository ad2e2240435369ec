from pathlib import Path

import pytest

from gravityocr_cli.configfile import resolve
from gravityocr_cli.errors import ConfigError, InputError, UsageError
from gravityocr_cli.settings import PageRanges, TextLayer


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(tmp_path: Path) -> None:
    config = write(tmp_path / "c.toml", 'text-layer = "off"\nblock = 8\njobs = 3\nimages = false\npages = "2-end"\n')
    environment = {"GRAVITYOCR_BLOCK": "16", "GRAVITYOCR_TEXT_LAYER": "draft", "HOME": "/", "GRAVITYOCR_DTYPE": ""}
    found = resolve({"text_layer": "auto"}, environment, config)
    settings = found.settings
    assert (settings.text_layer, settings.block, settings.jobs, settings.images) == (TextLayer.AUTO, 16, 3, False)
    assert settings.pages == PageRanges.parse("2-end")
    assert settings.dtype == "auto"
    names = ("text_layer", "block", "jobs", "dtype")
    assert [found.origins[name] for name in names] == [
        "--text-layer",
        "GRAVITYOCR_BLOCK",
        f"{config}: jobs",
        "default",
    ]


def test_the_file_can_be_named_by_the_environment(tmp_path: Path) -> None:
    config = write(tmp_path / "c.toml", "timeout = 5")
    assert resolve({}, {"GRAVITYOCR_CONFIG": str(config)}).settings.timeout == 5


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("text_layer = 'off'", "did you mean text-layer"),
        ("colour = 1", "colour: no such setting"),
        ("block = 0", "block: must be a whole number from 1 to 256"),
        ("block = 2.5", "block: must be a whole number"),
        ("block = true", "block: must be a whole number"),
        ("images = 'maybe'", "images: must be true or false"),
        ("images = 1", "images: must be true or false"),
        ("text-layer = 'none'", "must be one of auto, draft, off"),
        ("pages = '0'", "pages: '0' is not a range"),
        ("pages = 3", "pages: must be page ranges"),
        ("device = 'gpu'", "device: must be"),
        ("[table]\nx = 1", "table: no such setting"),
        ("block = [1]", "block: must be one value"),
        ("block = ", "not a TOML file"),
    ],
)
def test_a_senseless_file_is_one_error_that_names_the_place(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve({}, {}, write(tmp_path / "c.toml", text))
    assert says in str(caught.value)
    assert str(tmp_path / "c.toml") in str(caught.value)
    assert caught.value.exit_code == 10


def test_a_missing_file_and_a_misspelt_variable_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        resolve({}, {}, tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="GRAVITYOCR_BLOK: no such setting; did you mean GRAVITYOCR_BLOCK"):
        resolve({}, {"GRAVITYOCR_BLOK": "8"})
    with pytest.raises(ConfigError, match="GRAVITYOCR_BLOCK: must be"):
        resolve({}, {"GRAVITYOCR_BLOCK": "many"})
    with pytest.raises(UsageError, match="--block: must be"):
        resolve({"block": 0}, {})


def test_passwords_come_from_files_and_are_never_shown(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret", "hunter2\nsecond line\n")
    found = resolve({"password_file": secret}, {"GRAVITYOCR_PASSWORD": "other"})
    assert found.settings.password == "hunter2"
    assert "hunter2" not in repr(found)
    assert resolve({"password": "flag"}, {"GRAVITYOCR_PASSWORD_FILE": str(secret)}).settings.password == "flag"
    with pytest.raises(ConfigError) as caught:
        resolve({}, {}, write(tmp_path / "c.toml", "password = 12345"))
    assert "12345" not in str(caught.value)
    with pytest.raises(InputError, match="no such file"):
        resolve({"password_file": tmp_path / "none"}, {})
    with pytest.raises(InputError, match="empty"):
        resolve({"password_file": write(tmp_path / "empty", "")}, {})
