"""Headless Chromium for tests of the page of `motley watch`; uses only Python's standard library."""
import base64
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading

PATIENCE_S = 20.0


def chromium_here():
    """Its path; None if it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """Chromium by its DevTools protocol over a pair of pipes: JSON texts, each terminated by a zero byte."""

    def __init__(self, chromium):
        self.profile = tempfile.mkdtemp(prefix="page-check-")
        to_browser_r, self.to_browser = os.pipe()
        self.from_browser, from_browser_w = os.pipe()

        def ends():
            # Duplicates to 3 and 4, including where one of the pipes already has that number.
            r, w = os.dup(to_browser_r), os.dup(from_browser_w)
            r, w = os.dup2(r, 100), os.dup2(w, 101)
            os.dup2(r, 3)
            os.dup2(w, 4)

        self.process = subprocess.Popen(
            [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile}", "about:blank"],
            preexec_fn=ends, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser_r)
        os.close(from_browser_w)
        self.number = 0
        self.answers = queue.Queue()
        self.events = []
        threading.Thread(target=self._listen, daemon=True).start()
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.ask(f"{domain}.enable")

    def _listen(self):
        rest = b""
        while piece := os.read(self.from_browser, 1 << 16):
            *texts, rest = (rest + piece).split(b"\0")
            for message in map(json.loads, texts):
                (self.answers.put if "id" in message else self.events.append)(message)

    def ask(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if hasattr(self, "session"):
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.answers.get(timeout=PATIENCE_S)
            if answer["id"] == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def value(self, expression):
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def text(self, name):
        return self.value(f"document.getElementById('{name}')?.textContent ?? ''")

    def key(self, key, code=0):
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def of(self, method):
        return [event["params"] for event in list(self.events) if event["method"] == method]

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        shutil.rmtree(self.profile, ignore_errors=True)


def errors(browser):
    found = [e["exceptionDetails"].get("exception", {}).get("description") or e["exceptionDetails"]["text"]
             for e in browser.of("Runtime.exceptionThrown")]
    found += [e["entry"]["text"] + " " + e["entry"].get("url", "") for e in browser.of("Log.entryAdded") if e["entry"]["level"] == "error"]
    found += [str(e["args"]) for e in browser.of("Runtime.consoleAPICalled") if e["type"] in ("error", "assert")]
    return found


def width(browser, pixels, height=900, phone=False):
    browser.ask("Emulation.setDeviceMetricsOverride", width=pixels, height=height,
                deviceScaleFactor=2 if phone else 1, mobile=phone)
    browser.value("new Promise((done) => setTimeout(done, 300))")


def scheme(browser, value):
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])
    browser.value("new Promise((done) => setTimeout(done, 500))")


def photograph(browser, path):
    size = browser.ask("Page.getLayoutMetrics")["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
    picture = browser.ask("Page.captureScreenshot", format="webp", quality=75, captureBeyondViewport=True, clip=clip)
    path.write_bytes(base64.b64decode(picture["data"]))
    print(f"wrote {path}")
