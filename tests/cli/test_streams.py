"""Standard streams that are closed, full or cut off: what is said about it, and that the work goes on."""

import subprocess
import sys

import pytest

from gravityocr_cli.streams import printable

MAIN = "import sys\nfrom gravityocr_cli import __main__, cli\ncli.run = run\nsys.exit(__main__.main())\n"


def shell(redirected: str, script: str) -> subprocess.CompletedProcess[str]:
    """Runs a script as the program, its streams redirected by a shell."""
    command = ["bash", "-c", f'"$0" -c "$1" {redirected}', sys.executable, script]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_what_would_act_on_a_terminal_is_written_out() -> None:
    assert printable("a\nb\x1b[31m\x9b\u202e") == r"a\nb\x1b[31m\x9b\u202e"
    assert printable("Ünï 字 🎉 \\") == "Ünï 字 🎉 \\"


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full", "2> >(true)"])
def test_the_work_goes_on_where_nobody_listens(redirected: str) -> None:
    script = (
        "import time\nfrom gravityocr_cli.streams import say\n"
        "def run(arguments):\n    for _ in range(3):\n        say('news')\n        time.sleep(0.1)\n"
        "    print('done')\n    return 7\n"
    )
    done = shell(redirected, script + MAIN)
    assert (done.returncode, done.stdout, done.stderr) == (7, "done\n", "")


def test_no_output_gets_the_number_of_a_closed_stream() -> None:
    script = (
        "import os\ndef run(arguments):\n"
        "    print(os.open(os.devnull, os.O_RDONLY) > 2, repr(sys.stdin.read()))\n    return 0\n"
    )
    assert shell("<&- 2>&-", script + MAIN).stdout == "True ''\n"


@pytest.mark.parametrize(
    ("redirected", "reason"), [(">&-", "bad file descriptor"), (">/dev/full", "no space left on device")]
)
def test_a_product_that_standard_output_does_not_take_is_exit_5(redirected: str, reason: str) -> None:
    script = (
        "from gravityocr_cli.errors import CannotWrite\nfrom gravityocr_cli.output import StdoutProduct\n"
        "def run(arguments):\n    try:\n        with StdoutProduct() as product:\n            product.write('words')\n"
        "    except CannotWrite as error:\n        print(error, file=sys.stderr)\n        return error.exit_code\n"
    )
    done = shell(redirected, script + MAIN)
    assert done.stderr == f"standard output: cannot write the output ({reason})\n"
    assert done.returncode == 5


def test_a_list_that_nobody_reads_to_its_end_is_quiet() -> None:
    script = "def run(arguments):\n    print('word ' * 100_000)\n    return 0\n"
    done = shell("| head -c 10; exit ${PIPESTATUS[0]}", script + MAIN)
    assert (done.returncode, done.stdout, done.stderr) == (0, "word word ", "")


def test_a_closed_terminal_ends_a_run_in_order_unless_it_was_told_to_stay() -> None:
    script = (
        "import os, signal\ndef run(arguments):\n    try:\n        os.kill(os.getpid(), signal.SIGHUP)\n"
        "    finally:\n        os.kill(os.getpid(), signal.SIGHUP)\n        print('in order')\n    return 0\n"
    )
    heeding = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # the tests may run under nohup
    done = shell("", heeding + script + MAIN)
    assert (done.returncode, done.stdout) == (143, "in order\n")
    ignoring = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    assert shell("", ignoring + script + MAIN).returncode == 0
