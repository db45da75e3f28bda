"""A client that is a process of its own, to be killed: `onlooker.py SOCKET FILE [JSON …]`.

It follows everything from now on and writes each line that it is told to FILE; each JSON is the
params of a run that it sends before, without reading the answer. Nothing but the standard library:
it is started often.
"""

import json
import socket
import sys


def main() -> None:
    path, file, *runs = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as daemon, open(file, "ab", buffering=0) as told:  # noqa: PTH123
        daemon.connect(path)
        hello = {"protocolVersion": 1, "clientInfo": {"name": "onlooker"}}
        messages = [("initialize", hello)]
        messages.append(("events/subscribe", {"scope": {"all": True}, "after": "now"}))
        messages += [("run/create", json.loads(run)) for run in runs]
        for number, (method, params) in enumerate(messages):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            daemon.sendall(json.dumps(request).encode() + b"\n")
        while data := daemon.recv(1 << 16):
            told.write(data)


if __name__ == "__main__":
    main()
