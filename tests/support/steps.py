"""Pieces of scripts for the fake agent."""


def chunks(count: int, size: int) -> str:
    """A step that says so many pieces of an answer, as fast as they can be written."""
    content = f'{{"type":"text","text":"{"x" * size}"}}'
    update = f'{{"sessionUpdate":"agent_message_chunk","content":{content}}}'
    params = f'{{"sessionId":"${{SESSION}}","update":{update}}}'
    line = f'{{"jsonrpc":"2.0","method":"session/update","params":{params}}}'
    return f"    RAW '{line}\\n' times={count}\n"
