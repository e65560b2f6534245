import json
from http.server import BaseHTTPRequestHandler, HTTPServer

KEY = "Bearer secret-of-the-tutorial"


class Provider(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != KEY:
            self.answer(401, {"error": {"message": "Incorrect API key provided"}})
        elif self.path == "/v1/chat/completions":
            text = prompt_of(request["messages"][-1]["content"])
            said = f"You said: {text} (temperature {request.get('temperature')})"
            delta = {"choices": [{"index": 0, "delta": {"content": said}, "finish_reason": "stop"}]}
            self.answer(200, f"data: {json.dumps(delta)}\n\ndata: [DONE]\n\n", "text/event-stream")
        elif self.path == "/parrot":
            self.answer(200, parrot(request))
        else:
            self.answer(404, {"error": {"message": f"no such path: {self.path}"}})

    def answer(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write((body if isinstance(body, str) else json.dumps(body)).encode())

    def log_message(self, *args):
        pass


def prompt_of(content):
    """Return a prompt without the parts in tags that the server adds: the time, and a reminder."""
    text = content if isinstance(content, str) else content[-1]["text"]
    return "\n\n".join(part for part in text.split("\n\n") if not part.startswith("<"))


def parrot(request):
    """Repeat the last line; use an ability if the line names one, and then repeat the result."""
    last = request["lines"][-1]
    for ability in request.get("abilities", []):
        if last["from"] == "human" and ability["name"] in last["text"]:
            return {"use": {"name": ability["name"], "with": {"path": "poem.txt"}}}
    text = prompt_of(last["text"]) + "!" * request.get("volume", 1)
    return {"say": text, "words": len(text.split())}


print("the provider listens on port 8124", flush=True)
HTTPServer(("127.0.0.1", 8124), Provider).serve_forever()
