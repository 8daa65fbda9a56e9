"""Headless Chromium, driven over its DevTools protocol through a pipe: pages as wide as a phone is, light and dark."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
         "--disable-dev-shm-usage", "--remote-debugging-pipe")
HEIGHT, SECONDS = 900, 60
ASKED = Path(__file__).with_suffix(".js").read_text("utf-8")


class Browser:
    """`with Browser(folder) as browser: browser.open(address, 390); browser.value("document.title")`.

    `folder` is empty and gets what Chromium keeps. Errors of a page's scripts are AssertionErrors.
    """

    def __init__(self, folder: Path) -> None:
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        assert program, "Chromium is missing; `make chromium` installs it"
        (said, self._say), (self._hear, heard) = (_pipe(), _pipe())
        words = [program, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$0" "$@" 3<&{said} 4>&{heard}', *words], pass_fds=(said, heard),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(said)
        os.close(heard)
        self._number, self._session, self._unread, self._loaded = 0, "", b"", False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Emulation.setScrollbarsHidden", hidden=True)  # as on a phone

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._say)
        self._process.terminate()
        self._process.wait(SECONDS)
        os.close(self._hear)

    def open(self, address: str, width: int, dark: bool = False) -> None:
        """Returns once the page is loaded."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=HEIGHT, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._loaded = False
        self.call("Page.navigate", url=address)
        while not self._loaded:
            self._told()

    def value(self, script: str) -> Any:
        """Of an expression, awaited where it is a promise."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, condition: str, seconds: int = SECONDS) -> None:
        """Raises AssertionError where the expression is not true by then."""
        script = f"""(async () => {{ const end = performance.now() + {1000 * seconds};
            while (!({condition}) && performance.now() < end) await new Promise((go) => setTimeout(go, 20));
            return Boolean({condition}); }})()"""
        assert self.value(script), f"not within {seconds} s: {condition}"

    def press(self, key: str) -> None:
        """Tab or Enter."""
        about = {"key": key, "code": key, "windowsVirtualKeyCode": {"Tab": 9, "Enter": 13}[key]}
        self.call("Input.dispatchKeyEvent", type="keyDown", **about, **({"text": "\r"} if key == "Enter" else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def misfits(self) -> list[str]:
        """Elements that are wider than the page, and elements whose text is cut."""
        self.value("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        found: list[str] = self.value(f"(() => {{ {ASKED}\nreturn misfits(); }})()")
        return found

    def faint(self) -> list[list[Any]]:
        """Texts of too little contrast."""
        found: list[list[Any]] = self.value(f"(() => {{ {ASKED}\nreturn faint(); }})()")
        return found

    def picture(self) -> bytes:
        """The whole page as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(shot["data"])

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command of the protocol; what is told meanwhile is passed over."""
        self._number += 1
        asked = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            asked["sessionId"] = self._session
        os.write(self._say, json.dumps(asked).encode() + b"\0")
        while (told := self._told()).get("id") != self._number:
            pass
        assert "error" not in told, told["error"]
        answer: dict[str, Any] = told["result"]
        return answer

    def _told(self) -> dict[str, Any]:
        """The next message, which ends with a zero. Raises AssertionError where none comes."""
        while b"\0" not in self._unread:
            assert select.select([self._hear], [], [], 2 * SECONDS)[0], "the browser says nothing"
            read = os.read(self._hear, 1 << 16)
            assert read, "the browser has ended"
            self._unread += read
        first, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        self._loaded |= message.get("method") == "Page.loadEventFired"
        return message


def _pipe() -> tuple[int, int]:
    """Both ends far from 3 and 4, which a shell makes of them for the browser."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends)
    for end in ends:
        os.close(end)
    return moved[0], moved[1]
