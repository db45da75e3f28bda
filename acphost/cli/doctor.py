"""`acphost doctor`: what is wrong, what may surprise, and what to do about it."""

import os
import sys

import anyio

from acphost.cli.exits import Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.screen import Pen, err, out
from acphost.doctor.examine import examine
from acphost.doctor.finding import Diagnosis
from acphost.service.plan import own_program
from acphost.wire.agents import Severity

_MARKS = {
    Severity.OK: ("ok", "green"),
    Severity.WARNING: ("warning", "yellow"),
    Severity.PROBLEM: ("problem", "red"),
}


def run(options: Options) -> int:
    """Run the command: 1 if there is a problem, 0 with mere warnings."""
    return anyio.run(_doctor, options)


async def _doctor(options: Options) -> int:
    pen = out()
    found: list[Diagnosis] = []
    if options.e2e and not options.json:
        err().line("the trial at the end takes a quarter of a minute …", "dim")
    program = own_program(sys.argv[0])
    async for each in examine(vars(options), os.environ, program, trial=options.e2e):
        found.append(each)
        if not options.json:
            _show(pen, each)
    problems = sum(each.severity is Severity.PROBLEM for each in found)
    warnings = sum(each.severity is Severity.WARNING for each in found)
    if options.json:
        print_json({"ok": problems == 0, "findings": found})
    else:
        pen.line(f"{problems} problems, {warnings} warnings", "red" if problems else "green")
    return Exit.FAILURE if problems else Exit.OK


def _show(pen: Pen, each: Diagnosis) -> None:
    word, style = _MARKS[each.severity]
    pen.line(f"{pen.paint(f'{word:<8}', style)} {each.area:<15} {pen.safe(each.message)}")
    if each.cure and each.severity is not Severity.OK:
        pen.line(f"{'':<24} {pen.safe(each.cure)}", "dim")
